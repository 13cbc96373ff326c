"""Metrics of refusals and blocked requests."""
