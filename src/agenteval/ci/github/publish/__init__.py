"""Publishes a run: comment, check run, annotations."""
