"""Resources that metrics share in a run."""
