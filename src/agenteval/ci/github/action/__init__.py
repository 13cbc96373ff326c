"""The container action: inputs, isolation, outputs."""
