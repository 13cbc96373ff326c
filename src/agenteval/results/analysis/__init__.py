"""What the results of a run say as a whole: criteria, breakdowns, outliers, trends, causes of failures."""
