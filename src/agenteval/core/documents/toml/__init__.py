"""TOML with line numbers."""
