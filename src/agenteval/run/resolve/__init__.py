"""From settings, configuration and suites to what is run."""
