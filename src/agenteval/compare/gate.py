"""Decides whether a merge may go on, and with which exit status the program ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from agenteval.results.model import Results

FailOn = Literal["failures", "regressions", "errors", "inconclusive"]
FAIL_ON: tuple[FailOn, ...] = ("failures", "regressions", "errors", "inconclusive")
DEFAULT_FAIL_ON: frozenset[FailOn] = frozenset({"failures", "regressions", "errors"})

PASSED, FAILED, BROKEN = 0, 1, 3


@dataclass(frozen=True)
class GatePolicy:
    """What fails the gate.

    Args:
        fail_on: the kinds of trouble that count; empty lets everything pass that could be evaluated.
        max_error_rate: share of cases that may break before the run as a whole counts as broken.
    """

    fail_on: frozenset[FailOn] = DEFAULT_FAIL_ON
    max_error_rate: float = 0.10


@dataclass(frozen=True)
class Gate:
    """The decision: exit status 0 passed, 1 failed, 3 the infrastructure broke."""

    exit_status: int
    headline: str
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the merge may go on."""
        return self.exit_status == PASSED

    @property
    def verdict(self) -> Literal["passed", "failed", "error"]:
        """The decision in one word."""
        if self.passed:
            return "passed"
        return "failed" if self.exit_status == FAILED else "error"


def judge(results: Results, policy: GatePolicy) -> Gate:
    """Apply a policy to a run with its comparison."""
    summary = results.summary
    score = f"{summary.passed} of {summary.cases} cases passed"
    if summary.errors and summary.errors / (summary.cases - summary.skipped) > policy.max_error_rate:
        reason = f"{_cases(summary.errors)} could not be evaluated"
        return Gate(BROKEN, reason, (reason, score))
    failures = _failures(results, policy.fail_on)
    errors = [f"{_cases(summary.errors)} could not be evaluated"] if summary.errors else []
    if failures:
        return Gate(FAILED, failures[0], (*failures, *errors))
    if "errors" in policy.fail_on and errors:
        return Gate(BROKEN, errors[0], (*errors, score))
    return Gate(PASSED, score, ())


def _failures(results: Results, fail_on: Collection[FailOn]) -> list[str]:
    """Every reason to fail, the weightiest first."""
    summary, comparison = results.summary, results.comparison
    reasons = []
    if comparison is not None and comparison.verdict == "regressed" and "regressions" in fail_on:
        worse = sum(case.change == "regressed" for case in comparison.cases)
        reasons.append(f"{_cases(worse)} got worse" if worse else str(comparison.policy.get("reason")))
        reasons += [
            f"the mean of {metric.id} fell from {metric.baseline:.2f} to {metric.current:.2f}"
            for metric in comparison.metrics
            if metric.verdict == "regressed"
        ]
    if summary.failed and "failures" in fail_on:
        reasons.append(f"{_cases(summary.failed)} failed")
    unmet = [criterion.name for suite in results.suites for criterion in suite.criteria if criterion.met is False]
    if unmet and "failures" in fail_on:
        reasons.append(f"not met: {', '.join(unmet)}")
    if comparison is not None and comparison.verdict == "inconclusive" and "inconclusive" in fail_on:
        reasons.append(f"the comparison is inconclusive: {comparison.policy.get('reason')}")
    if fail_on and not summary.passed + summary.failed:
        why = "no case could be evaluated" if summary.errors else "every case was skipped"
        reasons.append(f"nothing was checked: {why if summary.cases else 'there is no case'}")
    return reasons


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """``failures,errors`` as a set; ``none`` is the empty one.

    Raises:
        ValueError: an unknown word, or ``none`` beside others.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return frozenset()
    unknown = [word for word in words if word not in FAIL_ON]
    if unknown or not words:
        named = f"{unknown[0]!r} is" if unknown else "an empty list is"
        raise ValueError(f"{named} not allowed; allowed: {', '.join(FAIL_ON)}, or none alone")
    return frozenset(word for word in FAIL_ON if word in words)
