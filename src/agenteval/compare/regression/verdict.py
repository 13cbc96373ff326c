"""The decision that follows from the state of the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from agenteval.compare.regression.burden import still_fails
from agenteval.compare.regression.case_proof import correlations
from agenteval.compare.regression.case_test import rerun_q
from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.losses import largest_lost_share, lost_share
from agenteval.compare.regression.mean_proof import mean_over_runs, proven_means
from agenteval.compare.regression.model import (
    CaseFinding,
    Decision,
    Failures,
    Look,
    MetricFinding,
    Unavailable,
)
from agenteval.compare.regression.power import detectable_drop, no_worse_than
from agenteval.compare.regression.runs import Numbers, Run, join
from agenteval.compare.regression.trial import HEAD_TO_HEAD, SECOND_EPOCH, SIDES, CaseRecord, MeanTest, Trial
from agenteval.core.statistics import ROUNDING

Verdict = Literal["regressed", "unproven", "improved", "unchanged"]

_HALF = 0.5


def conclude(trial: Trial, refused: Unavailable | None = None) -> Decision:
    """Return the decision.

    Args:
        trial: the state after everything that could be made was made.
        refused: why a suspicion could not be confirmed; ``None`` if all could.
    """
    verdict, missing = _verdict(trial, refused)
    control = trial.confirming["control"] or trial.pool[-1:]
    records = sorted(
        trial.cases.values(),
        key=lambda record: (not record.is_proven, record.candidate.p, record.candidate.case, record.candidate.metric),
    )
    return Decision(
        verdict=verdict,
        stage=trial.stage,
        metrics=tuple(_metric_findings(trial)),
        cases=tuple(_case_finding(trial, record) for record in records),
        looks=tuple(_unmirrored_look(trial, look) for look in trial.looks),
        repeats=trial.repeats,
        changed=tuple(trial.layout.case_ids[case] for case in trial.changed),
        losses=trial.losing,
        lost=(lost_share([trial.first, *trial.confirming["current"]]), lost_share(control)),
        missing=missing,
        carried=bool(trial.carried_means or trial.carried_cases),
        cost=trial.cost,
    )


def _verdict(trial: Trial, refused: Unavailable | None) -> tuple[Verdict, Unavailable | None]:
    missing = refused or trial.missing
    lost = largest_lost_share(trial.confirming["control"])
    if lost > trial.settings.max_control_lost:
        return "unproven", Unavailable("runs", f"the control lost {lost:.0%} of its iterations")
    if not trial.is_red and (lost := _lost_beside_suspects(trial)):
        return "unproven", Unavailable("runs", f"the control lost {lost:.0%} of its re-runs of a case")
    if not trial.is_red:
        return ("unchanged" if refused is None else "unproven"), missing
    if trial.losing and not _remains_without_losses(trial):
        return "unproven", missing
    return ("improved" if trial.layout.mirrored else "regressed"), missing


def _lost_beside_suspects(trial: Trial) -> float:
    """Return the largest lost share of the control's re-runs of a suspect, if that is half of them or more.

    A suspect is not proven, and would still fail more often if the lost re-runs had passed.
    """
    shares = [0.0]
    for (metric, case), record in trial.cases.items():
        if record.is_proven or not trial.reruns["control"] or not record.current.of:
            continue
        control = join(trial.reruns["control"])
        asked, lost = int(control.asked[metric][case]), int(control.lost[metric][case].sum())
        if not asked:
            continue
        failed = int(trial.layout.failures(control, metric)[0][case])
        fall = record.current.failed / record.current.of - failed / asked
        if fall >= trial.settings.case_drop - ROUNDING:
            shares.append(lost / asked)
    return max(share for share in shares if share == 0 or share >= _HALF)


def _remains_without_losses(trial: Trial) -> bool:
    """Return whether anything stays proven if lost iterations are missing instead of failed."""
    trial.losing = False
    try:
        if trial.repeats:
            return _repeats_remain(trial)
        return _means_remain(trial) or any(
            _case_remains(trial, record) for record in trial.cases.values() if record.is_proven
        )
    finally:
        trial.losing = True


def _repeats_remain(trial: Trial) -> bool:
    if any(trial.layout.failures(trial.first, metric)[0][case] for metric, case in trial.exact):
        return True
    return any(
        float(np.nanmean(change)) <= -trial.settings.min_effect
        for metric in trial.means
        if not np.isnan(change := trial.first.means[metric] - mean_over_runs(trial.pool[-1:], metric)).all()
    )


def _means_remain(trial: Trial) -> bool:
    test = trial.test
    if not trial.means or test is None or test.limit is None:
        return False
    if test.stage == "earlier-runs":
        p = trial.against_pool(test.own, test.other, SECOND_EPOCH)
        differences = trial.compare(test.own, test.other, SECOND_EPOCH).differences
        return bool(proven_means(p, differences, test.limit, trial.settings.min_effect) & trial.means)
    found = trial.compare(test.own, test.other, HEAD_TO_HEAD + len(test.other) - 1)
    if any(found.differences[metric] <= -drop / 2 for metric, drop in trial.carried_means.items()):
        return True
    return bool(proven_means(found.p, found.differences, test.limit, trial.settings.min_effect) & trial.means)


def _case_remains(trial: Trial, record: CaseRecord) -> bool:
    key = record.candidate.key
    current, control = (trial.rerun_counts(side, *key) for side in SIDES)
    if key in trial.carried_cases:
        return bool(current.of) and still_fails(current, control, trial.carried_cases[key])
    if record.limit is None:
        return False
    if not control.of:
        # Decided by earlier runs: the same failures must be there without the lost ones.
        return current.failed >= record.current.failed
    family = [other.candidate for other in trial.cases.values()]
    return rerun_q(current, control, correlations(trial, family)[key[0]]) <= record.limit


def _metric_findings(trial: Trial) -> list[MetricFinding]:
    test = trial.test or MeanTest("screen", [trial.first], trial.pool, None, None)
    inversion = None
    if test.seed is not None:
        own, other = ([trial.view(run) for run in runs] for runs in (test.own, test.other))
        inversion = Inversion(own, other, trial.unit_of, test.seed, trial.settings)
    return [_metric_finding(trial, test, inversion, metric) for metric in range(len(trial.layout.metrics))]


def _metric_finding(trial: Trial, test: MeanTest, inversion: Inversion | None, metric: int) -> MetricFinding:
    layout, first = trial.layout, trial.view(trial.first)
    before = mean_over_runs(trial.pool, metric) if trial.pool else np.full(len(layout.case_ids), np.nan)
    compared = ~np.isnan(first.means[metric]) & ~np.isnan(before)
    own = mean_over_runs([trial.view(run) for run in test.own], metric)
    other = mean_over_runs([trial.view(run) for run in test.other], metric) if test.other else before
    both = ~np.isnan(own) & ~np.isnan(other)
    interval = None
    if inversion is not None and test.limit is not None and both.any():
        interval = inversion.interval(metric, test.limit)
    return MetricFinding(
        metric=layout.metrics[metric],
        cases=int(compared.sum()),
        units=len(np.unique(trial.unit_of[compared])),
        baseline=_mean(trial, before, compared),
        first=_mean(trial, first.means[metric], compared),
        current=_mean(trial, own, both),
        control=_mean(trial, other, both),
        runs=len(test.other) if test.seed is not None else 0,
        p=None if test.p is None or trial.repeats else float(test.p[metric]),
        limit=None if test.p is None or trial.repeats else test.limit,
        interval=(-interval[1], -interval[0]) if interval and layout.mirrored else interval,
        bound=_bound(trial, first, metric, _mean(trial, before, compared)),
        detectable_drop=detectable_drop(trial.first, trial.pool, metric, trial.unit_of, trial.settings),
        suspicious=metric in trial.watched or (trial.repeats and metric in trial.means),
        proven=metric in trial.means,
    )


def _bound(trial: Trial, first: Run, metric: int, baseline: float) -> float | None:
    """Return the largest drop that the first run does not exclude; ``None`` if a score of 0 is not excluded."""
    if not trial.pool or trial.layout.mirrored:
        return None
    bound = no_worse_than(first, trial.pool, metric, trial.evidence.metrics[metric].step, trial.unit_of)
    return None if bound is None or bound >= baseline else bound


def _mean(trial: Trial, values: Numbers, compared: np.typing.NDArray[np.bool_]) -> float:
    """Return the mean of the compared cases as it was scored; 0 without any."""
    if not compared.any():
        return 0.0
    mean = float(values[compared].mean())
    return 1 - mean if trial.layout.mirrored else mean


def _case_finding(trial: Trial, record: CaseRecord) -> CaseFinding:
    candidate = record.candidate
    return CaseFinding(
        metric=trial.layout.metrics[candidate.metric],
        case_id=trial.layout.case_ids[candidate.case],
        pool=_unmirrored(trial, candidate.pool),
        first=_unmirrored(trial, candidate.first),
        current=_unmirrored(trial, record.current),
        control=_unmirrored(trial, record.control),
        q=record.q,
        limit=record.limit,
        proven=record.is_proven,
    )


def _unmirrored(trial: Trial, failures: Failures) -> Failures:
    return Failures(failures.of - failures.failed, failures.of) if trial.layout.mirrored else failures


def _unmirrored_look(trial: Trial, look: Look) -> Look:
    return replace(look, difference=-look.difference) if trial.layout.mirrored else look
