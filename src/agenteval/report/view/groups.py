"""Groups cases that have the same error of the agent, so that a report shows the error once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from agenteval.report.view.view import count
from agenteval.results.agent_errors import agent_errors
from agenteval.results.case import CaseResult

T = TypeVar("T")


def group_key(case: CaseResult) -> frozenset[str]:
    """Return what the cases of a group have in common; empty for a case that is shown alone."""
    return agent_errors(case.turns) if case.status == "error" else frozenset()


def grouped(entries: Iterable[T], case_of: Callable[[T], CaseResult]) -> list[list[T]]:
    """Return entries in groups, each at the place of its first entry."""
    groups: dict[int | frozenset[str], list[T]] = {}
    for number, entry in enumerate(entries):
        groups.setdefault(group_key(case_of(entry)) or number, []).append(entry)
    return list(groups.values())


def others(group: Sequence[object]) -> str:
    """Return `` and 3 more cases``, to follow the name of the first case; empty for a single case."""
    return f" and {count(len(group) - 1, 'more case')}" if len(group) > 1 else ""
