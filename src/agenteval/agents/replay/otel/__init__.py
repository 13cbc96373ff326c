"""Answers from OpenTelemetry traces."""
