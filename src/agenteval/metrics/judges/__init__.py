"""Metrics that call a judge model."""
