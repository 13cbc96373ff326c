"""Fixtures that integration tests share with those of whole commands."""

from tests.end_to_end.conftest import command, one_authority

__all__ = ["command", "one_authority"]
