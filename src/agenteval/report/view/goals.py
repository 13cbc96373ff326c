"""What the suites of a run are evaluated for, in their own words."""

from __future__ import annotations

from typing import NamedTuple

from agenteval.results.model import Results

_MOST = 5


class Goal(NamedTuple):
    """A goal, with the names of the suites that have it; without a name if all suites of the run have it."""

    suites: str
    text: str


def goals(results: Results) -> tuple[Goal, ...]:
    """Return the goals in the order of their suites, each once."""
    named: dict[str, list[str]] = {}
    for suite in results.suites:
        if suite.goal and suite.goal.strip():
            named.setdefault(suite.goal.strip(), []).append(suite.name)
    return tuple(
        Goal("" if len(names) == len(results.suites) else ", ".join(names), text)
        for text, names in list(named.items())[:_MOST]
    )
