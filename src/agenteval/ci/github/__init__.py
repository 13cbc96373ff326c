"""GitHub: action, API, baseline, comment, check run, publishing."""
