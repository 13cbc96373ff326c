"""What is lower than on earlier days: that raises a suspicion, and never a proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from agenteval.core.statistics import fisher_p
from agenteval.gate.statistics import p_by_case, p_by_pass, p_of_next
from agenteval.gate.values import Constants, GateMetric, Run, Values, case_means, joined, known, mean, pass_means

# Fewer cases than this cannot raise a suspicion by themselves: four equal drops have p = 1/16.
_FEW_CASES = 5
# The newest iterations of a case: young baselines, single iterations and repaired cases have no others.
_NEWEST = 3
# Runs from which on the means of runs tell how much days differ.
_RUNS = 3
_NONE = 1e-12
# Smaller drops would be shown as 0.00.
_SHOWN = 0.005


def mean_suspicion(run: Values, baseline: Sequence[Values], metric: GateMetric, *, by_pass: bool = True) -> float:
    """Return the p that the cases of a run are lower than in the baseline."""
    if metric.is_accepted:
        return 1.0
    earlier = joined(baseline)
    middle = case_means(earlier)
    differences = [value - middle[case] for case, value in case_means(run).items() if case in middle]
    p = p_by_case(differences, metric.slack)
    if by_pass and 0 < len(differences) < _FEW_CASES:
        here, there = pass_means(run, middle), pass_means(earlier, middle)
        p = min(p, p_by_pass(here, there, metric.slack, fewest=1))
    return p


def case_suspicions(
    run: Values, baseline: Sequence[Values], metric: GateMetric, rules: Constants
) -> list[tuple[float, str]]:
    """Return p and id of each case that fails more often than in the baseline.

    Suspicious is also a case that failed in all passes now and in none of its newest iterations: for few runs, for
    single iterations, and for cases that were repaired lately.
    """
    if metric.threshold is None and not metric.by_case:
        return []
    found = []
    earlier = joined(baseline)
    for case, row in run.items():
        number, failed = len(known(row)), metric.failures(case, row)
        before = earlier.get(case, ())
        base, base_failed = len(known(before)), metric.failures(case, before)
        if not failed or not base:
            continue
        p = fisher_p(base_failed, base, failed, number)
        rises = failed / number - base_failed / base >= rules.fall - 1e-9 and p <= rules.suspect
        breaks = failed == number and not metric.failures(case, before[-_NEWEST:])
        if rises or breaks:
            found.append((p, case))
    return found


def may_stop(run: Run, baseline: Sequence[Run], metrics: Mapping[str, GateMetric], rules: Constants) -> bool:
    """Return whether a first run may end early: no mean looks low, and no case is suspicious."""
    for name, metric in metrics.items():
        if name not in run:
            continue
        earlier = [old[name] for old in baseline if name in old]
        if mean_suspicion(run[name], earlier, metric) <= rules.go_on:
            return False
        if case_suspicions(run[name], earlier, metric, rules):
            return False
    return True


def are_copies(baseline: Sequence[Values]) -> bool:
    """Return whether answers of earlier runs are copies of each other: a cache outlives the session.

    They repeat within every run, and between runs some case came back to a value that it had left.
    """
    if not baseline:
        return False
    for values in baseline:
        rows = [known(row) for row in values.values()]
        if not rows or min(map(len, values.values())) < 2 or any(row and max(row) - min(row) > _NONE for row in rows):
            return False
    means = [case_means(values) for values in baseline]
    for case in means[0]:
        if all(case in run for run in means):
            series = [run[case] for run in means]
            changes = sum(old != new for old, new in itertools.pairwise(series))
            if changes >= len(set(series)):
                return True
    return False


def is_unproven_alone(run: Run, baseline: Sequence[Run], metrics: Mapping[str, GateMetric], rules: Constants) -> bool:
    """Return whether a suspicion is too strong to be cleared without runs side by side.

    A mean must be lower by case and, with three earlier runs or more, by run too: days differ from each other.
    """
    for name, metric in metrics.items():
        earlier = [old[name] for old in baseline if name in old]
        now = case_means(run.get(name, {}))
        if not now:
            continue
        means = [mean(list(found.values())) for values in earlier if (found := case_means(values))]
        by_run = p_of_next(mean(list(now.values())), means, metric.slack) if len(means) >= _RUNS else 0.0
        by_case = mean_suspicion(run[name], earlier, metric, by_pass=False)
        if max(by_run, by_case) <= rules.alone / len(metrics):
            return True
        if any(p <= rules.alone_case for p, _ in case_suspicions(run[name], earlier, metric, rules)):
            return True
    return False


def detectable_drop(baseline: Sequence[Values], passes: int, rules: Constants) -> float | None:
    """Return the drop of a mean that is found in about 8 of 10 pull requests; ``None`` if its spread is unknown.

    The larger one of what the first run needs against the baseline, and what the passes side by side need.
    """
    spread = spread_of_pass(baseline)
    number = length_of(baseline)
    if spread is None or not passes or not number:
        return None
    first, beside = math.sqrt(1 / passes + 1 / number), math.sqrt(2 / rules.looks[-1]) * 1.05
    drop = 3.3 * spread * max(first, beside)
    # Answers that never vary tell nothing about how much answers vary.
    return drop if drop >= _SHOWN else None


def spread_of_pass(baseline: Sequence[Values]) -> float | None:
    """Return the standard deviation of the mean of one pass, from how much cases vary; ``None`` if it is unknown."""
    rows = [known(row) for row in joined(baseline).values()]
    if not rows or not any(len(row) > 1 for row in rows):
        return None
    total = 0.0
    for row in rows:
        if len(row) > 1:
            centre = mean(row)
            total += math.fsum((value - centre) ** 2 for value in row) / (len(row) - 1)
    return math.sqrt(total) / len(rows)


def length_of(baseline: Sequence[Values]) -> int:
    """Return the number of passes of a baseline."""
    return max((len(row) for row in joined(baseline).values()), default=0)
