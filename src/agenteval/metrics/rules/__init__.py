"""Rules over the record of an answer."""
