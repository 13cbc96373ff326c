"""Suites that are too small for a suspicion about a mean, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.compare.phrases import count, quoted
from agenteval.compare.regression.model import Decision, Evidence
from agenteval.compare.regression.power import Blind, blind
from agenteval.compare.regression.settings import GateSettings


def blind_notes(evidence: Evidence, decision: Decision, settings: GateSettings) -> Iterator[str]:
    """Yield a note about the metrics without a threshold whose mean can fall without a suspicion.

    Args:
        decision: the decision; an agent that never varies needs no suspicion.
    """
    if decision.repeats:
        return
    runs = len(evidence.pool[-settings.window :])
    plain = {metric.id for metric in evidence.metrics if not metric.thresholds}
    found = {
        finding.metric: why
        for finding in decision.metrics
        if finding.metric in plain and (why := blind(finding.units, runs, settings))
    }
    if found:
        names = ", ".join(map(quoted, found))
        yield f"the gate cannot see a drop of {names}: {too_few(next(iter(found.values())))}"


def too_few(why: Blind) -> str:
    """Return why a mean cannot be suspicious, and what to do."""
    cases, runs = count(why.units, "independent case"), count(why.runs, "earlier run")
    mend = f"{why.least_runs} earlier runs, three cases or a threshold of the metric would suffice"
    return f"{cases} and {runs} are too few for a suspicion; {mend}"
