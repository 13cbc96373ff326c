"""Foundations that are independent of suites, cases and scores."""
