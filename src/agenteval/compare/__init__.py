"""Two runs side by side, and what the gate makes of it."""
