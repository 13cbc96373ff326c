"""The configuration file, ``agenteval.yaml``."""
