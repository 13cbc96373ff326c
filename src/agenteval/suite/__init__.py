"""Suites: the model, and one loader per format."""
