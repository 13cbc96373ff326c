"""Finds results that the base commit's suites and rules have not judged, although it has them."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval.compare.gate_counts import some
from agenteval.compare.pairing import own_cases
from agenteval.results.comparison import PoolCase
from agenteval.results.integrity import Difference
from agenteval.results.model import Results
from agenteval.suite.model import Case, Suite

_FIX = "evaluate the commit with its baseline, so that the base commit decides"


def judged_by_others(results: Results, suites: Iterable[Suite]) -> Difference | None:
    """Return that some cases were asked or judged otherwise than the base commit says; ``None`` if none was.

    Runs of the action have the base commit's versions of all cases that were not accepted. Results of other steps may
    have those of the change.

    Args:
        results: the run. Cases of other tools, and recorded traces, do not tell how they were judged.
        suites: the suites of the base commit.
    """
    theirs = {case.id: case for suite in suites for case in suite.cases}
    ours = own_cases(results)
    accepted = {item.case for item in results.run.integrity if item.accepted_by is not None}
    names = [
        case.name
        for _, case in results.cases()
        if case.id in theirs
        and case.id in ours
        and case.id not in accepted
        and _differs(ours[case.id], theirs[case.id])
    ]
    if not names:
        return None
    cases = "1 case" if len(names) == 1 else f"{len(names)} cases"
    return Difference(kind="rules", after=f"did not judge {cases} ({some(names)}); {_FIX}", effect="unproven")


def _differs(ours: PoolCase, theirs: Case) -> bool:
    """Return whether the question or a metric of the base commit differs; further metrics are only reported."""
    if not ours.fingerprint:
        return False
    known = theirs.fingerprints
    return ours.fingerprint != known.question or any(
        ours.metrics.get(name) != fingerprint for name, fingerprint in known.metrics.items()
    )
