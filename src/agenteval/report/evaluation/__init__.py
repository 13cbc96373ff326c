"""The report of one suite's analysis."""
