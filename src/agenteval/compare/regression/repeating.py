"""Agents whose scores never vary: a change that repeats on both sides is a fact."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from agenteval.compare.regression.case_test import Candidate
from agenteval.compare.regression.model import Failures, Side
from agenteval.compare.regression.runs import Flags, Numbers, Run, join
from agenteval.compare.regression.trial import Asking, CaseRecord, NotRunError, Trial
from agenteval.core.statistics import ROUNDING

#: Repeats of each changed case on each side.
REPEATS = 3


def seems_to_repeat(trial: Trial) -> bool:
    """Return whether nothing varies: all scores of a case are the same in the pool, and in the first run.

    That takes two earlier runs with ``min_pool_iterations`` iterations of each case; one run is enough if the agent
    is declared to repeat.
    """
    pool = _pool(trial)
    if not pool or (len(pool) < 2 and not trial.evidence.repeats):
        return False
    before, now = join(pool), trial.view(trial.first)
    least = 1 if trial.evidence.repeats else trial.settings.min_pool_iterations
    for metric in range(len(trial.layout.metrics)):
        compared = (now.asked[metric] > 0) & (before.asked[metric] > 0)
        if not compared.any():
            continue
        if (before.scored[metric][compared] < least).any() or (now.scored[metric][compared] == 0).any():
            return False
        if not (_is_constant(before.scores[metric][compared]) and _is_constant(now.scores[metric][compared])):
            return False
    return any(run.size for run in now.scores)


def _pool(trial: Trial) -> list[Run]:
    # Recorded answers change with every change of the agent, so only the newest run is the control's.
    return trial.pool[-1:] if trial.evidence.repeats else trial.pool


def _is_constant(scores: Numbers) -> bool:
    return bool((np.nanmax(scores, axis=1) - np.nanmin(scores, axis=1)).max() <= ROUNDING)


def decide_repeating(trial: Trial) -> Asking[bool]:
    """Repeat every changed case on both sides; return whether the changes repeat, so that the decision is made.

    If the control cannot run, the repeats of the agent under test alone decide: its pool never varied.
    """
    pairs = changed_values(trial)
    now, before = [new for new, _ in pairs], [old for _, old in pairs]
    moved = [np.abs(new - old) > ROUNDING for new, old in pairs]
    trial.repeats = True
    rows = np.flatnonzero(np.any(moved, axis=0)).tolist()
    trial.changed = tuple(rows)
    if not rows:
        return True
    note_changes(trial, pairs)
    rows = _clearest(trial, moved, pairs)
    _keep(trial, rows)
    wanted = {trial.layout.case_ids[case]: REPEATS for case in rows}
    try:
        made = yield from _repeat_changed(trial, wanted)
    except NotRunError:
        if not trial.is_red:
            return True
        trial.means.clear()
        for record in trial.cases.values():
            record.is_proven = False
        raise
    sides = {"current": now, "control": before}
    if not all(_repeat(trial.view(run), sides[side], rows) for side, run in made.items()):
        _forget(trial)
        return False
    for record in trial.cases.values():
        candidate = record.candidate
        record.current = _counts(trial, made["current"], candidate.metric, candidate.case)
        if "control" in made:
            record.control = _counts(trial, made["control"], candidate.metric, candidate.case)
    return True


def _clearest(trial: Trial, moved: list[Flags], pairs: list[tuple[Numbers, Numbers]]) -> list[int]:
    """Return at most ``max_cases`` changed cases: those that newly fail, and then those that fell furthest.

    If they all repeat, the suite does, and the means of all cases are facts too.
    """
    newly = {case for _, case in trial.exact}
    falls = np.max([np.nan_to_num(old - new, nan=-1.0) for new, old in pairs], axis=0)
    rows = np.flatnonzero(np.any(moved, axis=0)).tolist()
    ordered = sorted(rows, key=lambda case: (case not in newly, -float(falls[case]), case))
    return sorted(ordered[: trial.settings.max_cases])


def _keep(trial: Trial, rows: list[int]) -> None:
    """Forget the findings about cases that are not repeated: no case is proven without its own runs."""
    for key in [key for key in trial.cases if key[1] not in rows]:
        del trial.cases[key]
    trial.exact &= trial.cases.keys()


def _repeat_changed(trial: Trial, wanted: Mapping[str, int]) -> Asking[dict[Side, Run]]:
    """Repeat cases on both sides, or with the agent under test alone if the control cannot run."""
    try:
        made = yield from trial.ask("repeats", ("current", "control"), wanted, is_whole=False)
        trial.stage = "repeats"
    except NotRunError as refusal:
        if refusal.unavailable.what != "control" or trial.layout.mirrored or not trial.is_red:
            raise
        if trial.evidence.proves_nothing:
            raise
        made = yield from trial.ask("earlier-runs", ("current",), wanted, is_whole=False)
        trial.stage, trial.missing = "earlier-runs", refusal.unavailable
    return made


def changed_values(trial: Trial) -> list[tuple[Numbers, Numbers]]:
    """Return, per metric, the one score of each case in the first run and in the pool; NaN without any."""
    first, before = trial.view(trial.first), join(_pool(trial))
    return [(_values(first, metric), _values(before, metric)) for metric in range(len(trial.layout.metrics))]


def note_changes(trial: Trial, pairs: list[tuple[Numbers, Numbers]]) -> None:
    """Note the metrics whose mean falls enough, and the cases that newly fail."""
    for metric, (new, old) in enumerate(pairs):
        compared = ~np.isnan(new - old)
        if not compared.any():
            continue
        if float((new - old)[compared].mean()) <= -trial.settings.min_effect + ROUNDING:
            trial.means |= trial.counting({metric})
        failed, passed = (trial.layout.fails(values[:, None], metric)[:, 0] for values in (new, old))
        for case in np.flatnonzero((failed == 1) & (passed == 0)).tolist():
            pool, first = (_counts(trial, run, metric, case) for run in (join(_pool(trial)), trial.first))
            record = CaseRecord(Candidate(0.0, case, metric, pool, first), is_proven=True)
            trial.cases[metric, case] = record
            trial.exact.add((metric, case))


def _forget(trial: Trial) -> None:
    trial.repeats, trial.changed = False, ()
    trial.means.clear()
    trial.cases.clear()
    trial.exact.clear()


def _values(run: Run, metric: int) -> Numbers:
    """Return the one score of each case; NaN without any."""
    return np.where(np.isnan(run.means[metric]), np.nan, np.nan_to_num(run.scores[metric], nan=-1.0).max(axis=1))


def _repeat(run: Run, expected: list[Numbers], rows: list[int]) -> bool:
    for scores, values in zip(run.scores, expected, strict=True):
        known = [case for case in rows if not np.isnan(values[case])]
        if not known:
            continue
        apart = np.abs(scores[known] - values[known][:, None])
        if np.isnan(apart).all(axis=1).any() or float(np.nanmax(apart)) > ROUNDING:
            return False
    return True


def _counts(trial: Trial, run: Run, metric: int, case: int) -> Failures:
    failed, of = trial.layout.failures(trial.view(run), metric)
    return Failures(int(failed[case]), int(of[case]))
