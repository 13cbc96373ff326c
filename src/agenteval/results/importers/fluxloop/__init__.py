"""FluxLoop's results."""
