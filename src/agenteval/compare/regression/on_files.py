"""The decision on runs that exist, when nothing can be run again."""

from __future__ import annotations

import numpy as np

from agenteval.compare.regression.burden import carry
from agenteval.compare.regression.case_proof import correlations
from agenteval.compare.regression.case_test import Candidate, rerun_q
from agenteval.compare.regression.earlier_runs import judge_means
from agenteval.compare.regression.losses import may_hide_failures
from agenteval.compare.regression.mean_proof import look_at, screen_means
from agenteval.compare.regression.model import Burden, Decision, Evidence, Failures, Scores, Unavailable
from agenteval.compare.regression.repeating import changed_values, note_changes, seems_to_repeat
from agenteval.compare.regression.runs import Run, join
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import SIDES, CaseRecord, Trial, start
from agenteval.compare.regression.verdict import conclude
from agenteval.core.statistics import ROUNDING, fisher_p

_NO_BASE = Unavailable("runs", "there is no run of the base branch to compare with")
_UNKNOWN = Unavailable("runs", "results of an earlier version of agenteval may only raise suspicions; evaluate again")
_SUSPICION = Unavailable("runs", "the runs that could confirm or refute the suspicion cannot be made from files")

# A case is suspicious at or below this Fisher p, or if it always failed and never did before. In simulated suites of
# 50 cases, at most one clean change in ten has such a case, and nearly every change that breaks one.
_SUSPICIOUS = 0.02


def decide_on_files(
    evidence: Evidence, further: tuple[Scores, ...], settings: GateSettings, burden: Burden | None = None
) -> Decision:
    """Decide by the runs that exist.

    With several runs on both sides, the newest four of each are compared as in a head-to-head. Otherwise one or two
    runs of the change are compared with the pool, as when the control cannot run: a drop is proven at a small p, and
    a weaker suspicion is ``unproven``. Single cases are tested on all iterations of both sides.

    Args:
        evidence: the oldest run of the change as ``first``, the runs of the base branch as ``pool``.
        further: further runs of the change, oldest first.
        burden: what an earlier attempt was proven to have lost. Without runs beside the base, it stays proven if at
            least half of it is left.
    """
    trial = start(evidence, settings, mirrored=False)
    runs = [trial.first, *(trial.layout.read(run) for run in further)]
    if not trial.pool:
        return conclude(trial, _NO_BASE)
    trial.losing = any(may_hide_failures(run, trial.pool[-1], settings) for run in runs)
    if evidence.proves_nothing:
        return conclude(trial, _UNKNOWN if _is_newest_suspicious(trial, runs) else None)
    if _is_repeating(trial, runs):
        note_changes(trial, changed_values(trial))
        trial.repeats, trial.stage = True, "repeats"
        _carry(trial, runs, burden)
        return conclude(trial)
    side = min(len(runs), len(trial.pool), len(settings.strict))
    is_suspicious = _compare_sides(trial, runs, side) if side > 1 else _compare_with_pool(trial, runs)
    is_suspicious = _test_cases(trial, runs) or is_suspicious
    _carry(trial, runs, burden)
    return conclude(trial, _SUSPICION if is_suspicious and not trial.is_red else None)


def _is_newest_suspicious(trial: Trial, runs: list[Run]) -> bool:
    """Return whether the newest run of the change is suspicious; nothing is tested further."""
    trial.first = runs[-1]
    screen_means(trial)
    for candidate in trial.candidates():
        trial.cases[candidate.key] = CaseRecord(candidate)
    return bool(trial.watched or trial.cases)


def _carry(trial: Trial, runs: list[Run], burden: Burden | None) -> None:
    if burden is not None and not trial.is_red:
        carry(trial, runs, burden)


def _is_repeating(trial: Trial, runs: list[Run]) -> bool:
    """Return whether nothing varies in any run. Without a declaration, that takes two runs of the change."""
    if len(runs) < 2 and not trial.evidence.repeats:
        return False
    newest = trial.first
    trial.first = join(runs)
    if seems_to_repeat(trial):
        return True
    trial.first = newest
    return False


def _compare_sides(trial: Trial, runs: list[Run], side: int) -> bool:
    """Compare several runs of both sides; return whether a suspicion is left that more runs could decide."""
    trial.stage = "head-to-head"
    trial.confirming = {"current": runs[1:], "control": trial.pool}
    own, control = runs[-side:], trial.pool[-side:]
    for number in range(side):
        limit = trial.settings.strict[number]
        look = look_at(trial, own[: number + 1], control[: number + 1], limit)
        trial.looks.append(look)
        if trial.means:
            return False
    return side < len(trial.settings.strict) and look.p <= trial.settings.screen_epoch + ROUNDING


def _compare_with_pool(trial: Trial, runs: list[Run]) -> bool:
    """Compare the newest runs of the change with the pool; return whether the newest one is suspicious."""
    trial.first = runs[-1]
    screen_means(trial)
    judge_means(trial, runs[-2:])
    trial.stage = "earlier-runs"
    return bool(trial.watched)


def _test_cases(trial: Trial, runs: list[Run]) -> bool:
    """Test all cases on all iterations, and note what was found; return whether a suspicion is left."""
    candidates = trial.candidates()
    trial.reruns = {"current": runs, "control": trial.pool}
    keys = {candidate.key: candidate for candidate in candidates}
    everything, before = trial.view(join(runs)), join(trial.pool)
    family = 0
    found: list[Candidate] = []
    for metric in range(len(trial.layout.metrics)):
        failed, of = trial.layout.failures(everything, metric)
        failed_before, of_before = trial.layout.failures(trial.view(before), metric)
        compared = (of > 0) & (of_before > 0)
        family += int(compared.sum())
        for case in np.flatnonzero(compared & (failed > 0)).tolist():
            now = Failures(int(failed[case]), int(of[case]))
            past = Failures(int(failed_before[case]), int(of_before[case]))
            fell = now.share - past.share >= trial.settings.case_drop - ROUNDING
            if fell or (metric, case) in keys:
                found.append(keys.get((metric, case), Candidate(1.0, case, metric, past, now)))
    correlation = correlations(trial, found)
    for candidate in found:
        current, control = (trial.rerun_counts(side, *candidate.key) for side in SIDES)
        record = CaseRecord(candidate, current, control)
        record.q = rerun_q(record.current, record.control, correlation[candidate.metric])
        record.limit = trial.settings.case_alpha / family
        record.is_proven = record.q <= record.limit
        trial.cases[candidate.key] = record
    if trial.stage != "earlier-runs" and any(record.is_proven for record in trial.cases.values()) and not trial.means:
        trial.stage = "cases"
    return any(_is_suspicious(trial, record) for record in trial.cases.values())


def _is_suspicious(trial: Trial, record: CaseRecord) -> bool:
    """Return whether all iterations together leave a suspicion about a case that is worth a stop."""
    current, control = record.current, record.control
    if record.is_proven or not current.of or not control.of:
        return not record.is_proven
    if current.share - control.share < trial.settings.case_drop - ROUNDING:
        return False
    is_flip = current.failed == current.of and not control.failed
    return is_flip or fisher_p(control.failed, control.of, current.failed, current.of) <= _SUSPICIOUS
