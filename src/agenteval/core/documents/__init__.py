"""Documents that know the line of each value."""
