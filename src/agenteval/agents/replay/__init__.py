"""Agents that repeat recorded answers."""
