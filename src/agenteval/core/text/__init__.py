"""Untrusted text: escaping and masking."""
