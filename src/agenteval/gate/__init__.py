"""The gate: whether a run is worse than the base branch, and what follows from that."""
