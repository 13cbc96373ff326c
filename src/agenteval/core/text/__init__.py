"""Foreign text: escaping and masking."""
