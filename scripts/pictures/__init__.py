"""The pictures of the documentation, drawn from the product's own arithmetic."""
