"""Attempts of a pull request: the same files get the same verdict, and a proven regression must be refuted."""
