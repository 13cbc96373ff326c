"""Tells which metrics of a case can score the answers to its earlier version."""

from __future__ import annotations

from agenteval.compare.pairing import Match
from agenteval.compare.run_scores import pool_case
from agenteval.metrics.stored_answers import scores_stored_answers
from agenteval.results.comparison import PoolCase
from agenteval.suite.model import OVERALL, Case


def rescorable(case: Case, then: PoolCase | None) -> frozenset[str]:
    """Return the metrics that can score the stored answers of a case again, because their fingerprint changed.

    Args:
        case: the case of this run.
        then: the case of the baseline's run; ``None`` if it is new.
    """
    if then is None or not then.fingerprint:
        return frozenset()
    match = Match.of(pool_case(case.fingerprints, {}), then)
    if not match.question:
        return frozenset()
    other = {metric.id for metric in case.all_metrics if not scores_stored_answers(metric)}
    names = match.changed - other
    # The aggregated score needs the scores of all metrics.
    is_whole = match.changed == names and not match.unmatched
    return names if is_whole else names - {OVERALL}
