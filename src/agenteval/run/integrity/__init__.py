"""Reads the suites and rules of the base commit, and what was accepted; the change is judged by them."""
