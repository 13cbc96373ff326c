"""Metrics, which score answers. One file per family."""
