"""Compares the suites and rules of a change with those of the base commit, and decides what they mean."""
