"""Recorded traces: what one is, and how files of them are read."""
