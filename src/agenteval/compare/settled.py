"""Finds the cases of a run about which the runs of its baseline leave little doubt."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.pool import baseline_pool
from agenteval.compare.regression.model import Scores
from agenteval.compare.regression.settled import settled_cases
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results
from agenteval.suite.model import Fingerprints


def settled_in(
    baseline: Results, cases: Mapping[str, Fingerprints], policy: ComparePolicy, unrelated: Collection[str]
) -> frozenset[str]:
    """Return the ids of the settled cases.

    Args:
        baseline: the run to compare with; it contains the pool.
        cases: fingerprints of the cases of the run, by id; earlier runs of a case that differ do not count.
        unrelated: commits whose runs do not count.
    """
    reported = {name for name, metric in baseline.summary.metrics.items() if metric.pass_rate is None}

    def scores_of(entry: PoolEntry) -> Scores:
        same = ((case_id, entry.cases.get(case_id), known) for case_id, known in cases.items())
        return {
            case_id: {
                name: (*case.scores.get(name, ()), *[None] * case.lost.get(name, 0))
                for name in {**case.scores, **case.lost}
                if policy.gating.get(name, name not in reported)
            }
            for case_id, case, known in same
            if case is not None and _is_same(case, known)
        }

    pool = baseline_pool(baseline, "", policy.settings.window, unrelated)
    return settled_cases([scores_of(entry) for entry in pool.runs])


def _is_same(case: PoolCase, known: Fingerprints) -> bool:
    """Return whether an earlier run asked and judged a case in the same way, as far as it is known."""
    return case.fingerprint == known.question and case.metrics == dict(known.metrics)
