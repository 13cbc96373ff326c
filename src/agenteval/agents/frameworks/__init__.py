"""Finds agents and tools of frameworks in a repository's source code, without running it."""
