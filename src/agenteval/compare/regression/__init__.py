"""Decides whether a change made an agent worse: earlier runs raise a suspicion, runs side by side prove it."""
