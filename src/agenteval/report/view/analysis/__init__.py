"""What the report on the analysis of one suite shows."""
