"""AgentCI's ``.agentci/evals/*.toml``."""
