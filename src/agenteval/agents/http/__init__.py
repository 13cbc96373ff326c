"""Agents behind an HTTP address."""
