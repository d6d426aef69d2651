"""The command line: click commands, prompts, printing, exit status."""
