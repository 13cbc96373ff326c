"""Analyses of a whole run: criteria, personas, outliers, trends, causes of failures."""
