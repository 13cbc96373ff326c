"""The confirmation: the control commit, and runs of its agent beside the agent under test."""
