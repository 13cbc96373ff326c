"""``agenteval list``: suites as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from agenteval.report.view.view import count
from agenteval.run.suite_list import ListedSuite


def as_text(suites: Sequence[ListedSuite]) -> str:
    """Return one line for each suite."""
    return "\n".join(_line(suite) for suite in suites)


def _line(suite: ListedSuite) -> str:
    cases = "has mistakes" if suite.cases is None else count(suite.cases, "case")
    name = f" ({suite.name})" if suite.name != suite.path else ""
    return f"{suite.path}{name}: {suite.format or 'unknown format'}, {cases}"


def as_json(suites: Sequence[ListedSuite]) -> str:
    """Return a JSON list in one line, in ASCII."""
    return json.dumps([asdict(suite) for suite in suites])
