"""The zip file of an artifact, and the results in it. UnreadableZipError, ConfigError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.errors import ConfigError
from agenteval.github.artifacts import MemberLimits, UnreadableZipError, read_zip_member
from agenteval.results.store import parse_results

_LIMITS = MemberLimits(size=20_000_000)


def target(data: bytes) -> None:
    with suppress(UnreadableZipError, ConfigError):
        parse_results(read_zip_member(data, "results.json", _LIMITS), "results.json")
