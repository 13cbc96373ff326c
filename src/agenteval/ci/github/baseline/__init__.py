"""Finds the base branch's run to compare with."""
