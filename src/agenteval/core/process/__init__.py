"""Child processes: starting, confining and ending them."""
