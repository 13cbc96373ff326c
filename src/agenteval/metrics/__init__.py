"""What is measured on an answer; one file per family."""
