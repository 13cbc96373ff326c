"""Runs a plan: asks agents, scores answers."""
