"""Mutated ELF files by the hundred thousand: ``python -m tests.fuzz --count 100000``."""
