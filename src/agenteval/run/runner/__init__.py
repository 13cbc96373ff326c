"""The runner: calls agents and scores their answers."""
