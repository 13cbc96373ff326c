"""The statistics of the regression gate: pure arithmetic on scores, without files, clocks or global state."""
