"""Finds contradictions in a results file: changed by hand or by a program, it can say that a failed case passed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, SuiteResult
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.rollup import case_status, iteration_status, strict_case_status

_COUNTS = ("cases", "passed", "failed", "errors", "skipped")
_MOST_NAMED = 3


def check_consistent(results: Results, file: Path | str) -> None:
    """Check that the statuses and counts that a gate reads follow from the rest of the results.

    Args:
        results: a run with all its cases. Other tools have other rules, so theirs is not checked.
        file: where it is.

    Raises:
        ConfigError: they do not.
    """
    _refuse(results, contradictions(results), file)


def check_counts(results: Results, file: Path | str) -> None:
    """Check only the counts: a baseline can be of a version that had other rules for statuses; see above."""
    _refuse(results, wrong_counts(results), file)


def _refuse(results: Results, reasons: Iterator[str], file: Path | str) -> None:
    found = list(itertools.islice(reasons, _MOST_NAMED + 1)) if results.tool.name == OWN_NAME else []
    if found:
        why = "; ".join(found[:_MOST_NAMED] + ["…"] * (len(found) > _MOST_NAMED))
        message = f"the file contradicts itself, so it was changed after the run: {why}; run the suite again"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))


def contradictions(results: Results) -> Iterator[str]:
    """Yield where statuses and counts, which the gate reads, do not follow from the rest of the results.

    Args:
        results: a run with all its cases.
    """
    every = list(results.cases())
    cases = [case for _, case in every]
    times = Counter(case.id for case in cases)
    for case_id in (case_id for case_id, count in times.items() if count > 1):
        yield f"the case {case_id} is in it {times[case_id]} times"
    for suite, case in every:
        if (status := _status(case, suite)) != case.status:
            yield f"the case {case.id} has the status {case.status}, and its iterations make it {status}"
    yield from wrong_counts(results)


def wrong_counts(results: Results) -> Iterator[str]:
    """Yield the counts of the summary that are not those of the cases."""
    statuses = Counter(case.status for _, case in results.cases())
    counted = (statuses.total(), *(statuses[status] for status in ("passed", "failed", "error", "skipped")))
    for name, found in zip(_COUNTS, counted, strict=True):
        said = getattr(results.summary, name)
        if said != found:
            yield f"summary.{name} is {said:,}, and of its cases it is {found:,}"


def _status(case: CaseResult, suite: SuiteResult) -> CaseStatus:
    rule = strict_case_status if case.strict else case_status
    return rule([_iteration_status(item, suite) for item in case.iterations])


def _iteration_status(iteration: IterationResult, suite: SuiteResult) -> CaseStatus:
    status = iteration_status(iteration.turns)
    # Results do not contain the weights of a combined score, nor which metric's error is one of the case.
    is_certain = status == "failed" and suite.threshold is None
    is_certain = is_certain or any(turn.error for turn in iteration.turns)
    return status if is_certain and iteration.status != "error" else iteration.status
