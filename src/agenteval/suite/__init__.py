"""Suites: what they are, and one loader per format."""
