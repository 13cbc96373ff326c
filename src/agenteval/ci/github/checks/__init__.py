"""Check runs."""
