"""The conditions of the gate that a run does not meet: what was found, and what would have to be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.compare.gate_findings import Finding
from agenteval.results.verdict import Condition, PointKind, Unproven

# What fails the gate whatever `fail-on` contains; the rule for it.
_ALWAYS: dict[PointKind, str] = {"baseline": "on-missing-baseline: fail", "nothing": ""}


@dataclass(frozen=True)
class Unmet:
    """The conditions that a run does not meet.

    Args:
        broken: the number of cases that could not be run, as a sentence; empty without any.
        missing: what was not evaluated, compared or confirmed.
        max_error_rate: share of cases that may end in an error.
    """

    findings: Sequence[Finding]
    broken: Sequence[str]
    missing: Sequence[Unproven]
    max_error_rate: float
    fail_on: Collection[str]

    def failures(self) -> Iterator[Condition]:
        """Yield what failed, broke or fell."""
        for found in self.findings:
            for condition in found.conditions:
                rules = (condition.rule, f"fail-on: {found.kind}")
                yield condition.model_copy(update={"rule": "; ".join(filter(None, rules))})

    def errors(self, *, counts: bool) -> Iterator[Condition]:
        """Yield the cases that could not be run.

        Args:
            counts: whether a single one fails the gate; otherwise their share does.
        """
        rule = "fail-on: errors" if counts else f"max_error_rate: {self.max_error_rate:g}"
        for text in self.broken:
            yield Condition(found=text, rule=rule, about="cases")

    def points(self) -> Iterator[Condition]:
        """Yield what is not proven, each with its reasons."""
        usual = "fail-on: unproven" if "unproven" in self.fail_on else "fail-on does not contain unproven"
        for point in self.missing:
            found = f"{point.text}: {'; '.join(point.details)}" if point.details else point.text
            yield Condition(found=found, rule=_ALWAYS.get(point.what, usual), about=_about(point))


def _about(point: Unproven) -> Literal["cases", "metrics", "run"]:
    match point.what:
        case "cases" | "errors" | "confirmation":
            return "cases"
        case "metric" | "scores":
            return "metrics"
    return "run"
