"""``agenteval.yaml``."""
