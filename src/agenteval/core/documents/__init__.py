"""Parsed documents with the line of each value."""
