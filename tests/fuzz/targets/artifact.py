"""The zip file of an artifact, and the results in it. UnusableArtifactError, ConfigError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.errors import ConfigError
from agenteval.github.artifacts import ArtifactLimits, UnusableArtifactError, read_member
from agenteval.results.store import parse_results

_LIMITS = ArtifactLimits(member_size=20_000_000)


def target(data: bytes) -> None:
    with suppress(UnusableArtifactError, ConfigError):
        parse_results(read_member(data, "results.json", _LIMITS), "results.json")
