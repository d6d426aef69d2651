"""Timings against pip, in the environment of the incident."""
