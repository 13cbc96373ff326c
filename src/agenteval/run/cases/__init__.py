"""Finished cases: where they are kept, in memory and in the journal."""
