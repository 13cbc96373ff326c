"""HoloDeck's results."""
