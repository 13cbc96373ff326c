"""Comparison of two runs, and the decision of the gate."""
