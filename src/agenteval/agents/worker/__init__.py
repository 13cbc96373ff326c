"""Runs user code in the user's interpreter."""
