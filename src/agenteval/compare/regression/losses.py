"""Lost iterations: whether they may hide failures, and how many each side lost."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.regression.runs import Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import fisher_p


def may_hide_failures(run: Run, newest: Run | None, settings: GateSettings) -> bool:
    """Return whether a run of the agent under test lost so much that the losses may hide failures.

    That is so if, in any metric, it lost more than ``max_lost``, all iterations of a case, or significantly more than
    the newest run of the base branch.
    """
    for metric in range(len(run.scores)):
        lost, asked = _counts(run, metric)
        if not lost:
            continue
        if lost > settings.max_lost * asked:
            return True
        if ((run.asked[metric] > 0) & (run.scored[metric] == 0)).any():
            return True
        before = _counts(newest, metric) if newest is not None else (0, 0)
        if before[1] and fisher_p(*before, lost, asked) < settings.lost_alpha:
            return True
    return False


def is_lost(run: Run) -> bool:
    """Return whether a run was made and has no score."""
    return any(lost.any() for lost in run.lost) and not any(scored.any() for scored in run.scored)


def is_mostly_lost(run: Run) -> bool:
    """Return whether a run has no score in more than half of its cases, in any metric: it says nothing about them."""
    return any(
        int(((asked > 0) & (scored == 0)).sum()) > int((asked > 0).sum()) / 2
        for asked, scored in zip(run.asked, run.scored, strict=True)
    )


def lost_share(runs: Sequence[Run]) -> float:
    """Return the lost share of all iterations, 0..1."""
    counts = [_counts(run, metric) for run in runs for metric in range(len(run.scores))]
    asked = sum(of for _, of in counts)
    return sum(lost for lost, _ in counts) / asked if asked else 0.0


def largest_lost_share(runs: Sequence[Run]) -> float:
    """Return the largest lost share of any metric, 0..1; one lost iteration among others does not count."""
    shares = [0.0]
    for metric in range(len(runs[0].scores) if runs else 0):
        counts = [_counts(run, metric) for run in runs]
        lost, asked = sum(lost for lost, _ in counts), sum(of for _, of in counts)
        if lost > 1 or lost == asked > 0:
            shares.append(lost / asked)
    return max(shares)


def _counts(run: Run, metric: int) -> tuple[int, int]:
    return int(run.lost[metric].sum()), int(run.asked[metric].sum())
