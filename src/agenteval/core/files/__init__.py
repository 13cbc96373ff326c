"""The only ways to read and write files that other parties name or can change."""
