"""Finished cases, in memory and in the journal."""
