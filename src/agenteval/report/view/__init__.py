"""Plain values that every reporter shows."""
