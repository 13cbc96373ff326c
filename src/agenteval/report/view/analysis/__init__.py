"""Content of the report on the analysis of one suite."""
