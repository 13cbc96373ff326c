"""The files of a case: downloads and conversion to text."""
