"""Metrics: how answers are scored. One file per family."""
