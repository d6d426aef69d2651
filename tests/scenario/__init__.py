"""Whole requests over small environments, written down as data."""
