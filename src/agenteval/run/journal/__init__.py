"""The journal, which makes a run resumable."""
