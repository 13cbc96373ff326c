"""The errors of agents in a case, in a form that is the same in all cases with the same cause."""

from __future__ import annotations

import re

from agenteval.results.case import CaseResult

# Retries stop after many failures of an agent, so cases differ in their number.
_ATTEMPTS = re.compile(r" \(after \d+ attempts\)$")


def agent_errors(case: CaseResult) -> frozenset[str]:
    """Return the errors of the turns of a case, without the number of attempts."""
    return frozenset(without_attempts(turn.error) for turn in case.turns if turn.error)


def without_attempts(error: str) -> str:
    """Return an error without the number of attempts."""
    return _ATTEMPTS.sub("", error)
