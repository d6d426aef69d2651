"""The documentation against the program."""
