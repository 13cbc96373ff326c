"""Plain values that all reporters show."""
