"""``require: no-worse-than``: green needs that a drop of more than the tolerance is excluded.

The first run is compared with the pool, with 95 % on one side. Where that does not suffice, both agents run side by
side, up to the last look of the head-to-head. The levels of its looks add up to 5 %. A drop that these runs prove at
the strict limits, which hold even if every change came here, is a regression.
"""

from __future__ import annotations

from agenteval.compare.regression.mean_proof import look_at
from agenteval.compare.regression.model import Unavailable
from agenteval.compare.regression.power import difference_to_pool
from agenteval.compare.regression.runs import Run, join
from agenteval.compare.regression.trial import Asking, Trial
from agenteval.core.statistics import ROUNDING


def exclude_drops(trial: Trial) -> Asking[None]:
    """Make the runs that could exclude drops of more than the tolerance; notes the bounds, and what they prove."""
    settings = trial.settings
    if not why_not_excluded(trial):
        return
    own, control = _side_by_side(trial)
    wanted = {case: count * settings.length(trial.run_calls) for case, count in trial.plan.items()}
    for number in range(len(control), len(settings.strict)):
        made = yield from trial.ask("head-to-head", ("current", "control"), wanted, is_whole=True)
        own.append(made["current"])
        control.append(made["control"])
        trial.stage = "head-to-head"
        trial.looks.append(look_at(trial, own, control, settings.strict[number]))
        if trial.means:
            return
        trial.bounds = bounds(trial, own, control, settings.excluded[number])
        if not why_not_excluded(trial):
            return


def why_not_excluded(trial: Trial) -> Unavailable | None:
    """Return why a change is not green although no drop is proven; ``None`` if it is, or nothing is required."""
    settings = trial.settings
    if settings.require is None or trial.layout.mirrored or trial.repeats or not trial.pool:
        return None
    known = trial.bounds or bounds(trial, [trial.first], trial.pool, settings.excluded_by_first)
    worst, metric = max(((bound, metric) for metric, bound in known.items()), default=(0.0, 0))
    if worst <= settings.tolerance + ROUNDING:
        return None
    name, allowed = trial.layout.metrics[metric], f"{100 * settings.tolerance:g}"
    why = f"{name} may have fallen by up to {100 * worst:.1f} points, and `require: no-worse-than` allows {allowed}"
    return Unavailable("runs", f"{why}; more iterations or more cases would show less")


def bounds(trial: Trial, own: list[Run], other: list[Run], level: float) -> dict[int, float]:
    """Return, per metric, the largest drop that runs do not exclude, at a one-sided level; 1 if none can tell."""
    joined, others = join([trial.view(run) for run in own]), [trial.view(run) for run in other]
    return {
        metric: 1.0 if found is None else found.bound_at(1 - level)
        for metric, gating in enumerate(trial.evidence.metrics)
        for found in [difference_to_pool(joined, others, metric, gating.step, trial.unit_of)]
    }


def _side_by_side(trial: Trial) -> tuple[list[Run], list[Run]]:
    """Return the runs of the head-to-head so far. A second run without one was picked for not being low."""
    if trial.test is None or trial.test.seed is None:
        return [], []
    return list(trial.test.own), list(trial.test.other)
