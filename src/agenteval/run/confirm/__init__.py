"""Confirmation runs: what to run again, and the agent of the base commit."""
