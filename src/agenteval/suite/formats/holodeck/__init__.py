"""HoloDeck's ``agent.yaml``."""
