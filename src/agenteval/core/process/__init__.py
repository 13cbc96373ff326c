"""Child processes: start, confine and end them."""
