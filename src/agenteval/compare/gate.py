"""Decides whether the gate passes, and the exit status of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from agenteval.compare.policy import Quarantine
from agenteval.results.model import CaseResult, CaseStatus, ComparedResource, Comparison, Results

FailOn = Literal["failures", "regressions", "errors", "inconclusive"]
FAIL_ON: tuple[FailOn, ...] = ("failures", "regressions", "errors", "inconclusive")
DEFAULT_FAIL_ON: frozenset[FailOn] = frozenset({"failures", "regressions", "errors"})

PASSED, FAILED, BROKEN = 0, 1, 3
# Rules that do not compare single cases.
_BY_MEANS = frozenset({"mean-drop", "threshold"})
_RESOURCES = {"latency_ms": "the latency", "tokens": "the tokens of an answer", "cost_usd": "the cost of an answer"}


@dataclass(frozen=True)
class GatePolicy:
    """The conditions that fail the gate.

    Args:
        fail_on: the kinds of problems that fail the gate; empty: only broken runs fail.
        max_error_rate: share of cases (0..1) that may end in an error before the whole run counts as broken.
        quarantine: cases whose failures and errors do not count.
    """

    fail_on: frozenset[FailOn] = DEFAULT_FAIL_ON
    max_error_rate: float = 0.10
    quarantine: tuple[Quarantine, ...] = ()

    def counts(self, case: CaseResult, today: date) -> bool:
        """Return whether a case counts today."""
        return not any(entry.holds(case.id, case.name, today) for entry in self.quarantine)


@dataclass(frozen=True)
class Gate:
    """The gate's decision. Exit status: 0 passed, 1 failed, 3 infrastructure error."""

    exit_status: int
    headline: str
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.exit_status == PASSED

    @property
    def verdict(self) -> Literal["passed", "failed", "error"]:
        """The decision in one word."""
        if self.passed:
            return "passed"
        return "failed" if self.exit_status == FAILED else "error"


@dataclass(frozen=True)
class _Counts:
    """Numbers of cases, quarantined ones left out."""

    cases: int
    passed: int
    failed: int
    errors: int
    skipped: int

    @classmethod
    def of(cls, results: Results, policy: GatePolicy, today: date) -> _Counts:
        summary = results.summary
        out = (
            Counter(case.status for _, case in results.cases() if not policy.counts(case, today))
            if policy.quarantine
            else Counter[CaseStatus]()
        )
        return cls(
            cases=summary.cases - out.total(),
            passed=summary.passed - out["passed"],
            failed=summary.failed - out["failed"],
            errors=summary.errors - out["error"],
            skipped=summary.skipped - out["skipped"],
        )


def decide_gate(results: Results, policy: GatePolicy, today: date | None = None) -> Gate:
    """Apply the gate policy to a run and its comparison.

    Args:
        results: the run, with its comparison if there is one.
        policy: the conditions that fail the gate.
        today: the date that decides which quarantine entries have ended; default: today in UTC.
    """
    counts = _Counts.of(results, policy, today or datetime.now(UTC).date())
    score = f"{counts.passed} of {counts.cases} cases passed"
    if counts.errors and counts.errors / (counts.cases - counts.skipped) > policy.max_error_rate:
        reason = f"{_cases(counts.errors)} could not be evaluated"
        return Gate(BROKEN, reason, (reason, score))
    failures = _failures(results, counts, policy.fail_on)
    errors = [f"{_cases(counts.errors)} could not be evaluated"] if counts.errors else []
    if failures:
        return Gate(FAILED, failures[0], (*failures, *errors))
    if "errors" in policy.fail_on and errors:
        return Gate(BROKEN, errors[0], (*errors, score))
    return Gate(PASSED, score, ())


def quarantined(results: Results, policy: GatePolicy, today: date | None = None) -> frozenset[str]:
    """Return the ids of quarantined cases; `today` as for `decide_gate`."""
    if not policy.quarantine:
        return frozenset()
    day = today or datetime.now(UTC).date()
    return frozenset(case.id for _, case in results.cases() if not policy.counts(case, day))


def is_named(policy: GatePolicy, case: CaseResult) -> bool:
    """Return whether the quarantine names a case, whether or not the entry has ended."""
    return any(entry.names(case.id, case.name) for entry in policy.quarantine)


def _failures(results: Results, counts: _Counts, fail_on: Collection[FailOn]) -> list[str]:
    """Return every reason to fail, the most important first."""
    comparison = results.comparison
    reasons = _regressions(comparison) if comparison is not None and "regressions" in fail_on else []
    if counts.failed and "failures" in fail_on:
        reasons.append(f"{_cases(counts.failed)} failed")
    unmet = [criterion.name for suite in results.suites for criterion in suite.criteria if criterion.met is False]
    if unmet and "failures" in fail_on:
        reasons.append(f"criterion not met: {', '.join(unmet)}")
    if comparison is not None and comparison.verdict == "inconclusive" and "inconclusive" in fail_on:
        reasons.append(f"the comparison is inconclusive: {comparison.policy.get('reason')}")
    if fail_on and not counts.passed + counts.failed:
        why = "no case could be evaluated" if counts.errors else "every case was skipped"
        none = "every case is in quarantine" if results.cases() else "there is no case"
        reasons.append(f"nothing was checked: {why if counts.cases else none}")
    return reasons


def _regressions(comparison: Comparison) -> list[str]:
    reasons = []
    if comparison.verdict == "regressed":
        worse = sum(case.change == "regressed" for case in comparison.cases)
        by_cases = worse and comparison.policy.get("name") not in _BY_MEANS
        reasons.append(f"{_cases(worse)} got worse" if by_cases else str(comparison.policy.get("reason")))
        reasons += [
            f"the mean of {metric.id} fell from {metric.baseline:.2f} to {metric.current:.2f}"
            for metric in comparison.metrics
            if metric.verdict == "regressed" and metric.gating and metric.difference < 0
        ]
    return reasons + [_exceeded(resource) for resource in comparison.resources if resource.exceeded]


def _exceeded(resource: ComparedResource) -> str:
    rise = "from nothing" if resource.change is None else f"by {resource.change:.0%}"
    return f"{_RESOURCES[resource.name]} rose {rise}, {resource.allowed or 0:.0%} is allowed"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """Parse the value of ``--fail-on``: ``failures,errors`` as a set; ``none`` as the empty set.

    Raises:
        ValueError: a word is unknown, or ``none`` stands beside others.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return frozenset()
    unknown = [word for word in words if word not in FAIL_ON]
    if unknown or not words:
        named = f"{unknown[0]!r} is" if unknown else "an empty list is"
        raise ValueError(f"{named} not allowed; allowed: {', '.join(FAIL_ON)}, or none alone")
    return frozenset(word for word in FAIL_ON if word in words)
