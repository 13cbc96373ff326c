"""Statistics of the gate: pure arithmetic on scores, without files, clocks or global state."""
