"""Resolves settings, configuration and suites into the specification and the plan of a run."""
