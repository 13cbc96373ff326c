"""The pull-request comment and the job summary in Markdown."""
