"""What metrics share in a run."""
