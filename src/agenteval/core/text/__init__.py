"""Text of others: escaping and masking."""
