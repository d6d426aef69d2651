"""Tests of safe-uninstall."""
