"""Imports the results of other tools."""
