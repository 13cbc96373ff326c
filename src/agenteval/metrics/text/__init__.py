"""Metrics that compare texts."""
