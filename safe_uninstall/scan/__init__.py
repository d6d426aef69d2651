"""Reads an environment; never imports or executes code from it."""
