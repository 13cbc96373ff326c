"""What people with write access accepted in a pull request."""
