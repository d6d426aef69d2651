"""Loader rules, each held against the real dynamic loader."""
