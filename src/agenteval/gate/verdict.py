"""Decides the gate's verdict on a run, and the exit status of the program."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import Field

from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import choices
from agenteval.gate.failures import Counts, Failures, Required, failures_of, of_cases
from agenteval.gate.findings import (
    UNCOMPARED,
    Unmet,
    broken,
    failures_and_regressions,
    listed,
    passed_headline,
    unmeasured_notes,
    unproven_points,
    with_coverage,
)
from agenteval.gate.values import BaseNames, Quarantine
from agenteval.results.case import CaseResult
from agenteval.results.history import is_interrupted
from agenteval.results.model import Results, RunShard
from agenteval.results.verdict import Condition, Gate, Rules, Unproven, Verdict

FailOn = Literal["failures", "regressions", "unproven", "errors", "suspicious"]
FAIL_ON: tuple[FailOn, ...] = ("failures", "regressions", "unproven", "errors", "suspicious")
DEFAULT_FAIL_ON: frozenset[FailOn] = frozenset(FAIL_ON) - {"suspicious"}

PASSED, FAILED, BROKEN = 0, 1, 3


@dataclass(frozen=True)
class GatePolicy:
    """The conditions that fail the gate.

    Args:
        fail_on: the kinds of problems that fail the gate; empty: only broken runs fail.
        max_error_rate: share of cases (0..1) that may end in an error before the whole run counts as broken,
            whatever ``fail_on`` contains. With ``errors`` in ``fail_on``, any error fails the gate.
        quarantine: cases whose failures and errors do not count.
        required: the cases that fail the gate whenever they fail, even if they fail in the baseline too.
        base_names: by which the quarantine knows renamed cases.
        needs_baseline: whether a run that is compared with nothing is unproven and fails, unless nothing does.
    """

    fail_on: frozenset[FailOn] = DEFAULT_FAIL_ON
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.10
    quarantine: tuple[Quarantine, ...] = ()
    required: Required = field(default_factory=Required)
    base_names: BaseNames = field(default_factory=dict)
    needs_baseline: bool = False

    def counts(self, case: CaseResult, today: date) -> bool:
        """Return whether a case counts today."""
        return not any(entry.holds(*self.name_of(case), today) for entry in self.quarantine)

    def name_of(self, case: CaseResult) -> tuple[str, str]:
        """Return the id and the name by which the quarantine knows a case."""
        return self.base_names.get(case.id, (case.id, case.name))

    def knowing(self, names: BaseNames) -> GatePolicy:
        """Return the policy that knows cases by their names in the base commit."""
        return replace(self, base_names=names, required=replace(self.required, base_names=names))


def decide_gate(results: Results, policy: GatePolicy, today: date | None = None) -> Gate:
    """Apply the gate policy to a run and its comparison.

    A run in which too much broke is an ``error``; if a limit ended it, it is ``unproven``, with the same exit status.
    Else a proven failure makes it ``failed``. Else anything that counts and was not evaluated, compared or confirmed
    makes it ``unproven``. ``fail_on`` decides whether an unproven run fails the job, but never makes it pass.

    Args:
        today: the date that decides which quarantine entries have ended; default: today in UTC.
    """
    if results.run.shard is not None:
        return _of_shard(results, results.run.shard)
    out = quarantined(results, policy, today)
    counts = Counts.of(results, out)
    if is_interrupted(results.run):
        gate = _interrupted(results, counts)
    else:
        gate = _decided(results, policy, counts, failures_of(results, policy.required, out), out)
    return gate.model_copy(update={"headline": with_coverage(gate.headline, results)})


def _decided(
    results: Results, policy: GatePolicy, counts: Counts, failing: Failures | None, out: Collection[str]
) -> Gate:
    points = unproven_points(results, counts, policy.max_error_rate, out)
    if policy.needs_baseline and results.comparison is None:
        points = (*points, UNCOMPARED)
    # A limit of the run ends cases with an error, but nothing broke.
    is_limited = any(point.what in {"time", "budget"} for point in points)
    findings = failures_and_regressions(results, counts, failing)
    failing_findings = [found for found in findings if found.kind in policy.fail_on]
    failures = [text for found in failing_findings for text in (found.text, *found.details)]
    aside = listed(results, counts, failing)
    errors = broken(counts)
    missing = [text for point in points for text in (point.text, *point.details)]
    further = [*missing, *aside]
    too_many = bool(errors) and counts.errors / (counts.cases - counts.skipped) > policy.max_error_rate
    errors_count = bool(errors) and "errors" in policy.fail_on
    unmet = Unmet(failing_findings, errors, points, policy.max_error_rate, policy.fail_on)
    if too_many and not errors_count:
        errors = [f"{text}, and max_error_rate allows {policy.max_error_rate * 100:g} %" for text in errors]
    if too_many and is_limited:
        conditions = [*unmet.points(), *unmet.failures(), *unmet.errors(counts=errors_count)]
        return _gate("unproven", BROKEN, [*further, *failures, *errors, counts.score], conditions)
    if too_many:
        conditions = [*unmet.errors(counts=errors_count), *unmet.failures()]
        return _gate("error", BROKEN, [*errors, *failures, *further, counts.score], conditions)
    if failures:
        conditions = [*unmet.failures(), *(unmet.errors(counts=True) if errors_count else ())]
        return _gate("failed", FAILED, [*failures, *errors, *further], conditions)
    if errors_count and not is_limited:
        return _gate("error", BROKEN, [*errors, *further, counts.score], unmet.errors(counts=True))
    if points:
        fails = errors_count or "unproven" in policy.fail_on
        # A run that checked nothing, or not what was asked for, fails, unless nothing fails the job.
        fails |= bool(policy.fail_on) and any(point.what in {"nothing", "baseline"} for point in points)
        conditions = [*unmet.points(), *(unmet.errors(counts=True) if errors_count else ())]
        return _gate("unproven", _status(points) if fails else PASSED, [*further, *errors, counts.score], conditions)
    tolerated = [finding.text for finding in findings if finding.kind != "suspicious"]
    notes = [finding.text for finding in findings if finding.kind == "suspicious"]
    words = [word for word in FAIL_ON if word in policy.fail_on]
    headline = passed_headline(counts, failing, tolerated, [*aside, *notes, *unmeasured_notes(results)], words)
    return Gate(verdict="passed", exit_status=PASSED, headline=headline)


def _gate(verdict: Verdict, status: int, reasons: Iterable[str], conditions: Iterable[Condition]) -> Gate:
    found, unmet = tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(conditions))
    return Gate(verdict=verdict, exit_status=status, headline=found[0], reasons=found, conditions=unmet)


def _status(points: Iterable[Unproven]) -> int:
    return FAILED if any(point.mended_by == "change" for point in points) else BROKEN


def _of_shard(results: Results, part: RunShard) -> Gate:
    """Return the decision on a shard: it proves nothing alone, and only a broken one fails its job."""
    proof = " of the proof" if part.cases else " of the proof: there is nothing to prove"
    covers = f", {of_cases(results.summary.cases, len(part.cases))}" if part.proof is None else proof
    headline = f"shard {part.index} of {part.count}{covers}; agenteval merge decides"
    return Gate(verdict="unproven", exit_status=PASSED if results.run.complete else BROKEN, headline=headline)


def _interrupted(results: Results, counts: Counts) -> Gate:
    covered = results.run.coverage
    headline = f"{of_cases(counts.cases, covered.selected if covered else counts.cases)} had finished"
    reasons = (*broken(counts), *([counts.score] if counts.cases else []))
    conditions = (Condition(found=f"the run was interrupted: {headline}"),)
    return Gate(verdict="error", exit_status=BROKEN, headline=headline, reasons=reasons, conditions=conditions)


def quarantined(results: Results, policy: GatePolicy, today: date | None = None) -> frozenset[str]:
    """Return the ids of quarantined cases; `today` as for `decide_gate`."""
    if not policy.quarantine:
        return frozenset()
    day = today or datetime.now(UTC).date()
    return frozenset(case.id for _, case in results.cases() if not policy.counts(case, day))


def rules_of(policy: GatePolicy, out: Collection[str]) -> Rules:
    """Return the rules of a decision, for its record."""
    fail_on = tuple(word for word in FAIL_ON if word in policy.fail_on)
    required = ("*",) if policy.required.strict else policy.required.texts
    return Rules(
        fail_on=fail_on, max_error_rate=policy.max_error_rate, quarantine=tuple(sorted(out)), required=required
    )


def is_quarantined_by_name(policy: GatePolicy, case: CaseResult) -> bool:
    """Return whether the quarantine names a case, whether or not the entry has ended."""
    return any(entry.names(*policy.name_of(case)) for entry in policy.quarantine)


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """Parse the value of ``--fail-on``: ``failures,errors`` as a set; ``none`` as the empty set."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return frozenset()
    unknown = [word for word in words if word not in FAIL_ON]
    if unknown or not words:
        named = f"{unknown[0]!r} is" if unknown else "an empty list is"
        raise ValueError(f"{named} not allowed{choices(unknown[0] if unknown else '', FAIL_ON)}, or none alone")
    return frozenset(word for word in FAIL_ON if word in words)
