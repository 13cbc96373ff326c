"""The files of a case: found, downloaded, converted to text."""
