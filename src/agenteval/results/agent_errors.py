"""The errors of agents in a case, in a form that is the same in all cases with the same cause."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenteval.results.case import TurnResult

# Retries stop after many failures of an agent, so cases differ in their number.
_ATTEMPTS = re.compile(r" \(after \d+ attempts\)$")


_TRACEBACK = "Traceback (most recent call last):"
#: The exception at the end of a traceback, with its text.
RAISED = re.compile(r"(?:^|[\s:])(?P<error>(?:\w+\.)*\w+(?:Error|Exception|Exit|Warning): (?P<text>.*))$")


def agent_errors(turns: Iterable[TurnResult]) -> frozenset[str]:
    """Return the errors of turns, without the number of attempts."""
    return frozenset(without_attempts(turn.error) for turn in turns if turn.error)


def without_attempts(error: str) -> str:
    """Return an error without the number of attempts."""
    return _ATTEMPTS.sub("", error)


def without_traceback(error: str) -> str:
    """Return an error with only the exception of a traceback; the case has all of it."""
    before, found, after = error.partition(_TRACEBACK)
    raised = RAISED.search(after) if found else None
    return f"{before}{raised['error']}" if raised else error
