"""Cases about which earlier runs leave little doubt: one iteration of them is enough for a first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.compare.regression.model import Scores
from agenteval.core.statistics import ROUNDING

#: A case is settled if at least so many iterations of earlier runs all scored the same.
SETTLED_ITERATIONS = 9
#: Limits of the two screens after a first run that asked settled cases only once: a little more is suspicious.
SETTLED_SCREEN = (0.12, 0.02)
# If earlier runs lost a larger share of their iterations, many cases would lose their only one.
_MOST_LOST = 0.01


def settled_cases(pool: Sequence[Scores]) -> frozenset[str]:
    """Return the ids of the cases that scored the same in every iteration of the pool, in all metrics.

    Only the pool decides, before the first run begins. If the scores of the run itself decided how often a case runs,
    its mean would be biased: a case that passes 9 times of 10, stops at its first pass, and runs twice more after a
    failure, has an expected mean of 0.96.

    Args:
        pool: earlier runs; only cases and metrics that ask the same as in the run, and that can fail the gate.
    """
    lost = [score is None for run in pool for case in run for score in _scores(run, case)]
    if sum(lost) > _MOST_LOST * len(lost):
        return frozenset()
    cases = {case for run in pool for case in run}
    return frozenset(case for case in cases if _is_settled(pool, case))


def _scores(run: Scores, case: str) -> Iterator[float | None]:
    for scores in run.get(case, {}).values():
        yield from scores


def _is_settled(pool: Sequence[Scores], case: str) -> bool:
    by_metric: dict[str, list[float | None]] = {}
    for run in pool:
        for metric, scores in run.get(case, {}).items():
            by_metric.setdefault(metric, []).extend(scores)
    return bool(by_metric) and all(_is_one_score(scores) for scores in by_metric.values())


def _is_one_score(scores: Sequence[float | None]) -> bool:
    known = [score for score in scores if score is not None]
    return len(known) == len(scores) >= SETTLED_ITERATIONS and max(known) - min(known) <= ROUNDING
