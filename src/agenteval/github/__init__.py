"""GitHub: the step of a workflow, the API, and what is published."""
