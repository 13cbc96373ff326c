"""The sticky comment on a pull request."""
