"""The decision that follows from the state of the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from agenteval.compare.regression.burden import still_fails
from agenteval.compare.regression.case_proof import correlations, scored_fall
from agenteval.compare.regression.case_test import rerun_q
from agenteval.compare.regression.losses import largest_lost_share, lost_share
from agenteval.compare.regression.mean_proof import both_readings, mean_over_runs, proven_means
from agenteval.compare.regression.metric_findings import metric_findings
from agenteval.compare.regression.model import CaseFinding, Decision, Look, Unavailable
from agenteval.compare.regression.no_worse import why_not_excluded
from agenteval.compare.regression.runs import join
from agenteval.compare.regression.trial import HEAD_TO_HEAD, SECOND_EPOCH, SIDES, CaseRecord, Trial
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
        metrics=tuple(metric_findings(trial)),
        cases=tuple(_case_finding(trial, record) for record in records),
        looks=tuple(_unmirrored_look(trial, look) for look in trial.looks),
        control_p=None if trial.layout.mirrored else trial.control_p,
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
    if trial.is_red:
        return _verdict_of_red(trial, missing)
    if lost := _lost_beside_suspects(trial):
        return "unproven", Unavailable("runs", f"the control lost {lost:.0%} of its re-runs of a case")
    if refused is not None:
        return "unproven", missing
    if why := why_not_excluded(trial):
        return "unproven", why
    if _loses_a_suspect(trial):
        return "unproven", None
    if trial.losing and _are_means_lower_without_losses(trial):
        return "unproven", Unavailable("runs", _control_lost(trial))
    return "unchanged", missing


def _verdict_of_red(trial: Trial, missing: Unavailable | None) -> tuple[Verdict, Unavailable | None]:
    """Return the verdict about what is proven: a control that loses many iterations may owe them to its host."""
    if largest_lost_share(trial.confirming["control"]) > trial.settings.max_control_lost:
        return "unproven", Unavailable("runs", _control_lost(trial))
    if trial.losing and not _remains_without_losses(trial):
        return "unproven", missing
    return ("improved" if trial.layout.mirrored else "regressed"), missing


def _control_lost(trial: Trial) -> str:
    return f"the control lost {largest_lost_share(trial.confirming['control']):.0%} of its iterations"


def _are_means_lower_without_losses(trial: Trial) -> bool:
    """Return whether a mean is proven lower in the head-to-head if lost iterations are missing instead of failed."""
    test = trial.test
    if test is None or test.seed is None or test.limit is None:
        return False
    found = both_readings(trial, test.own, test.other)[1]
    return bool(proven_means(found.p, found.differences, test.limit, trial.settings.min_effect))


def _lost_beside_suspects(trial: Trial) -> float:
    """Return the largest lost share of the control's re-runs of a suspect, if that is half of them or more.

    A suspect is not proven, and its scored re-runs fail more often than the control's.
    """
    shares = [0.0]
    for (metric, case), record in trial.cases.items():
        if record.is_proven or not trial.reruns["control"] or not record.current.of:
            continue
        control = join(trial.reruns["control"])
        asked, lost = int(control.asked[metric][case]), int(control.lost[metric][case].sum())
        if asked and scored_fall(trial, (metric, case)) >= trial.settings.case_drop - ROUNDING:
            shares.append(lost / asked)
    return max(share for share in shares if share == 0 or share >= _HALF)


def _loses_a_suspect(trial: Trial) -> bool:
    """Return whether every re-run of a suspect is lost, and less than half of the control's: that refutes nothing."""
    if not trial.reruns["control"]:
        return False
    current, control = (join(trial.reruns[side]) for side in SIDES)
    return any(
        current.asked[metric][case] > 0 == current.scored[metric][case]
        and control.scored[metric][case] > _HALF * control.asked[metric][case]
        for metric, case in trial.cases
    )


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


def _case_finding(trial: Trial, record: CaseRecord) -> CaseFinding:
    candidate = record.candidate
    return CaseFinding(
        metric=trial.layout.metrics[candidate.metric],
        case_id=trial.layout.case_ids[candidate.case],
        pool=trial.layout.as_scored(candidate.pool),
        first=trial.layout.as_scored(candidate.first),
        current=trial.layout.as_scored(record.current),
        control=trial.layout.as_scored(record.control),
        q=record.q,
        limit=record.limit,
        proven=record.is_proven,
    )


def _unmirrored_look(trial: Trial, look: Look) -> Look:
    return replace(look, difference=-look.difference) if trial.layout.mirrored else look
