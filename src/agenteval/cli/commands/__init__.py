"""The commands, in groups: each module defines options and calls one function for each command."""
