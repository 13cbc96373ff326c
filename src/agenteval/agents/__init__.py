"""The ways to reach an agent under test."""
