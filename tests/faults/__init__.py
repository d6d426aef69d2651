"""Runs that are killed, or whose disk fails, at every call that changes something."""
