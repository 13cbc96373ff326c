"""What a search for a baseline is given and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agenteval.ci.github.api.artifacts import DownloadLimits
from agenteval.ci.github.api.zip_member import MemberLimits
from agenteval.results.model import Results

_SHORT = 7


@dataclass(frozen=True, slots=True)
class ChangeTo:
    """Begin where the base branch and the head commit of a change part."""

    head: str


@dataclass(frozen=True, slots=True)
class Before:
    """Begin at the parent of a commit of the base branch itself."""

    commit: str


@dataclass(frozen=True, slots=True)
class At:
    """Begin at a commit of the base branch itself."""

    commit: str


@dataclass(frozen=True, slots=True)
class GivenRun:
    """Take this run and no other."""

    run_id: int


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for.

    Args:
        repository: ``owner/name``.
        workflow: name of the workflow file, for instance ``agenteval.yml``.
        artifact: name of the artifact.
        base_branch: the branch whose runs count.
        start: where to begin.
        max_commits: how many commits are looked at.
    """

    repository: str
    workflow: str
    artifact: str
    base_branch: str
    start: ChangeTo | Before | At | GivenRun
    max_commits: int = 50


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What a search may take.

    Args:
        download: of one artifact.
        member: of the results in it.
        downloads: how many artifacts are tried.
        runs: how many runs are asked for their artifacts.
        total_s: seconds, looked at before each artifact.
    """

    download: DownloadLimits = field(default_factory=DownloadLimits)
    member: MemberLimits = field(default_factory=MemberLimits)
    downloads: int = 20
    runs: int = 50
    total_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Found:
    """A baseline.

    Attributes:
        data: its results.json.
        results: the same, read.
        commit: that the run was for.
        run_id: of the workflow run.
        created_at: when that run began.
        distance: commits between it and where the search began; ``None`` for a given run.
        began_at: where that was, in words.
        notes: what was passed over on the way, and what was left out of the results.
    """

    data: bytes = field(repr=False)
    results: Results = field(repr=False)
    commit: str
    run_id: int
    created_at: datetime
    distance: int | None
    began_at: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no baseline: a sentence on the reason, and what was passed over."""

    reason: str
    notes: tuple[str, ...] = ()


def describe(found: Found, now: datetime | None = None) -> str:
    """Which baseline is used: commit, distance, age and run.

    Args:
        found: the baseline.
        now: with a time zone; the clock's time if not given.
    """
    parts = [f"commit {short(found.commit)}"]
    if found.distance == 0:
        parts.append(found.began_at)
    elif found.distance is not None:
        parts.append(f"{counted(found.distance, 'commit')} before {found.began_at}")
    parts.append(f"{_age((now or datetime.now(UTC)) - found.created_at)} old")
    return f"baseline: {', '.join(part for part in parts if part)} (workflow run {found.run_id})"


def short(commit: str) -> str:
    """A commit as people write it."""
    return commit[:_SHORT]


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes < 120:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // (24 * 60), "day")
