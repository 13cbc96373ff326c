"""Foundations that know nothing of suites, cases or scores."""
