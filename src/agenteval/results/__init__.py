"""The results of a run, and how they are stored."""
