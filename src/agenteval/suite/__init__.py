"""Suites: their model, and one loader per format."""
