"""Moments, ages and commits in words."""

from __future__ import annotations

from datetime import UTC, datetime

from agenteval.core.text.escape import one_line
from agenteval.report.view.view import count

_LONGEST = 80
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def moment(text: str) -> str:
    """Format an ISO 8601 timestamp; other texts stay unchanged, on one line."""
    found = _parsed(text)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else one_line(text, _LONGEST)


def age(then: str, now: str) -> str:
    """Return the time between two moments; empty if unknown."""
    first, last = _parsed(then), _parsed(now)
    if first is None or last is None or last < first:
        return ""
    seconds = (last - first).total_seconds()
    for length, name in _UNITS:
        if seconds >= length:
            return count(int(seconds // length), name)
    return "less than a minute"


def short_commit(sha: str | None) -> str:
    """Return the short form of a commit."""
    return "".join(filter(str.isalnum, (sha or "").encode("ascii", "ignore").decode()))[:12]


def _parsed(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
