"""Input and result of a search for a baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agenteval.ci.github.api.artifacts import DownloadLimits
from agenteval.ci.github.api.zip_member import MemberLimits
from agenteval.results.model import Results

_SHORT = 7
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Start:
    """Start at a commit; ``place`` describes it in messages."""

    commit: str
    place: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The commit to start at is unknown; ``why`` is a sentence with the fix."""

    why: str


@dataclass(frozen=True, slots=True)
class GivenRun:
    """Use a given run."""

    run_id: int


@dataclass(frozen=True, slots=True)
class Search:
    """Parameters of a search.

    Args:
        repository: ``owner/name``.
        workflow: name of the workflow file, for instance ``agenteval.yml``.
        artifact: name of the artifact.
        base_branch: branch whose runs count.
        start: start of the search; its ancestors follow.
        own_run: id of the workflow run that searches: an earlier attempt of it is never its baseline.
        default_branch: default branch of the repository, if it is known.
    """

    repository: str
    workflow: str
    artifact: str
    base_branch: str
    start: Start | Unknown | GivenRun
    own_run: str | None = None
    default_branch: str | None = None


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a search.

    Args:
        download: limits of one download.
        member: limits of the results file.
        downloads: limit of artifacts.
        runs: limit of runs.
        requests: limit of the requests that list runs and their artifacts, and that compare commits.
        total_s: time limit in seconds, checked before each artifact.
    """

    download: DownloadLimits = field(default_factory=DownloadLimits)
    member: MemberLimits = field(default_factory=MemberLimits)
    downloads: int = 20
    runs: int = 50
    requests: int = 100
    total_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Found:
    """A baseline.

    Attributes:
        results: the parsed results.
        commit: commit of the run.
        run_id: id of the workflow run.
        created_at: start of the run.
        distance: commits from the start of the search; ``None`` for a given run.
        start: the start of the search; ``None`` for a given run.
        between: the states of the branch after the commit, up to the start, newest first; empty if they are unknown.
        notes: skipped runs, and parts left out of the results.
    """

    results: Results = field(repr=False)
    commit: str
    run_id: int
    created_at: datetime
    distance: int | None
    start: Start | None = None
    between: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """No baseline: the reason as a sentence, and the skipped runs."""

    reason: str
    notes: tuple[str, ...] = ()


def describe(found: Found, now: datetime | None = None) -> str:
    """Describe a baseline: commit, distance, age and run.

    Args:
        found: the baseline.
        now: current time with time zone; default: the clock.
    """
    parts = [f"commit {short(found.commit)}"]
    if found.start is not None and found.distance is not None:
        place = found.start.place
        parts.append(f"{counted(found.distance, 'commit')} before {place}" if found.distance else place)
    parts.append(f"{_age((now or datetime.now(UTC)) - found.created_at)} old")
    return f"baseline: {', '.join(part for part in parts if part)} (workflow run {found.run_id}){_included(found)}"


def _included(found: Found) -> str:
    """Return which commits of the branch have no usable run, so that their changes are compared too."""
    if not found.between:
        return ""
    named = ", ".join(map(short, found.between[:_MOST_NAMED]))
    more = len(found.between) - _MOST_NAMED
    return f"; the comparison includes {named}{f' and {more:,} more' if more > 0 else ''}"


def short(commit: str) -> str:
    """Return the short form of a commit."""
    return commit[:_SHORT]


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes < 120:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // (24 * 60), "day")
