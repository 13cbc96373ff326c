"""Comment and summary in Markdown."""
