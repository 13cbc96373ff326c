"""GitHub's REST API: connection, runs, artifacts."""
