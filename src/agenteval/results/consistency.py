"""Finds contradictions in a results file: changed by hand or by a program, it can say that a failed case passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agenteval.results.case import CaseResult, CaseStatus, IterationResult, SuiteResult
from agenteval.results.model import Results
from agenteval.results.rollup import case_status, iteration_status, strict_case_status, summarise

_COUNTS = ("cases", "passed", "failed", "errors", "skipped")


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
    counted = summarise(cases)
    for name in _COUNTS:
        said, found = getattr(results.summary, name), getattr(counted, name)
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
