"""Runs the user's Python code in the user's interpreter."""
