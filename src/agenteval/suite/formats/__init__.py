"""The suite formats, and their registry."""
