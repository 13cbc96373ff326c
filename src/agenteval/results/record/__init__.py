"""The flat record of an answer."""
