"""The program end to end, as a process, in environments that are built on the spot."""
