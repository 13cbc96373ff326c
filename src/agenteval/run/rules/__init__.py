"""The rules that decide about a run: those of the base commit, and what was accepted."""
