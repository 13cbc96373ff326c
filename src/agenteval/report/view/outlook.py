"""What will happen after a first run, as the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.compare.phrases import count, points
from agenteval.results.model import Results
from agenteval.results.outlook import Outlook


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """A number of runs of the base branch, and what the gate finds with them."""

    runs: str
    mean: str
    case: str


def outlook_rows(results: Results) -> tuple[OutlookRow, ...]:
    """Return the rows; empty if the run has none."""
    return tuple(OutlookRow(count(item.runs, "run"), _mean(item), _case(item)) for item in results.outlook)


def _mean(item: Outlook) -> str:
    if item.too_few:
        return "nothing: too few cases"
    if item.drop is None or item.metric is None:
        return "not known yet"
    return f"{item.metric}: from about {points(round(item.drop, 2))}"


def _case(item: Outlook) -> str:
    return "not provable alone" if item.case_calls is None else f"proven by {item.case_calls} calls"
