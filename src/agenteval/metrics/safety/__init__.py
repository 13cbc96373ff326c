"""Refusals and blocked requests."""
