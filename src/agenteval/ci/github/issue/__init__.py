"""The issue about a slow decline of the base branch."""
