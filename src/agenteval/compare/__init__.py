"""Compares two runs, and decides the gate."""
