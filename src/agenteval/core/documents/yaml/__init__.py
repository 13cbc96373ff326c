"""YAML with line numbers and limits."""
