"""Agents under test: the kinds of agents, and how each is called."""
