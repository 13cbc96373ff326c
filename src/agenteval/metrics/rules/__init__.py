"""Rules that check the record of an answer."""
