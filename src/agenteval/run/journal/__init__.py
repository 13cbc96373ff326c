"""The journal that makes a run resumable."""
