"""Finds the earlier attempts of a pull request in the artifacts of its workflow runs."""
