"""The proof that single cases fail more often: re-runs of both sides, in rounds."""

from __future__ import annotations

import numpy as np

from agenteval.compare.regression.case_test import Candidate, rerun_q, within_run_correlation
from agenteval.compare.regression.model import Failures
from agenteval.compare.regression.trial import SIDES, Asking, CaseRecord, Trial
from agenteval.core.statistics import ROUNDING


def prove_cases(trial: Trial, candidates: list[Candidate]) -> Asking[None]:
    """Re-run candidates on both sides until each is proven or dropped; notes what was found."""
    settings = trial.settings
    live = {candidate.key for candidate in candidates}
    trial.cases = {candidate.key: CaseRecord(candidate) for candidate in candidates}
    correlation = correlations(trial, candidates)
    done = 0
    for number, (total, spend) in enumerate(zip(settings.case_rounds, settings.case_spend, strict=True)):
        limit = settings.case_alpha * spend / len(candidates)
        if not live:
            return
        if number == 0:
            yield from rerun_current(trial, live, total)
            live = {key for key in live if _fails_again(trial, *key)}
            if not live:
                return
            trial.awaiting_control = live
            made = yield from trial.ask("cases", ("control",), _wanted(trial, live, total), is_whole=False)
        else:
            made = yield from trial.ask(
                "cases", ("current", "control"), _wanted(trial, live, total - done), is_whole=False
            )
            trial.reruns["current"].append(made["current"])
        trial.awaiting_control = set()
        trial.reruns["control"].append(made["control"])
        done = total
        live = {key for key in live if _judge(trial, key, correlation[key[0]], limit)}


def rerun_current(trial: Trial, keys: set[tuple[int, int]], repeats: int) -> Asking[None]:
    """Re-run cases with the agent under test alone, and note their failures."""
    made = yield from trial.ask("cases", ("current",), _wanted(trial, keys, repeats), is_whole=False)
    trial.stage = "cases"
    trial.reruns["current"].append(made["current"])
    for key in keys:
        trial.cases[key].current = trial.rerun_counts("current", *key)


def correlations(trial: Trial, candidates: list[Candidate]) -> dict[int, float]:
    """Return the correlation within a run of each metric with a candidate, from the other cases of the pool."""
    rows = {candidate.case for candidate in candidates}
    return {
        metric: within_run_correlation(trial.pool, metric, rows, trial.layout, trial.settings)
        for metric in {candidate.metric for candidate in candidates}
    }


def _wanted(trial: Trial, keys: set[tuple[int, int]], repeats: int) -> dict[str, int]:
    return {trial.layout.case_ids[case]: repeats for case in sorted({case for _, case in keys})}


def _fails_again(trial: Trial, metric: int, case: int) -> bool:
    """Return whether the drop shows again against the best run of the pool."""
    current = trial.rerun_counts("current", metric, case)
    if not current.of:
        return False
    before = [trial.layout.failures(run, metric) for run in trial.pool]
    shares = [failed[case] / of[case] for failed, of in before if of[case]]
    return current.share - float(np.min(shares)) >= trial.settings.case_drop - ROUNDING


def _judge(trial: Trial, key: tuple[int, int], correlation: float, limit: float) -> bool:
    """Note what the re-runs so far show, and return whether the case needs another round."""
    record = trial.cases[key]
    record.current, record.control = (trial.rerun_counts(side, *key) for side in SIDES)
    if limit > 0:
        record.q, record.limit = rerun_q(record.current, record.control, correlation), limit
        record.is_proven = record.q <= limit
    return not record.is_proven and _is_suspect(trial, key)


def _is_suspect(trial: Trial, key: tuple[int, int]) -> bool:
    """Return whether a case fails more often than the control by ``case_drop``, whichever way lost re-runs count."""
    record = trial.cases[key]
    least = trial.settings.case_drop - ROUNDING
    return fall(record.current, record.control) >= least or scored_fall(trial, key) >= least


def scored_fall(trial: Trial, key: tuple[int, int]) -> float:
    """Return how far the pass rate of the scored re-runs is below the control's; a side that lost all passes."""
    return fall(*(trial.scored_rerun_counts(side, *key) for side in SIDES))


def fall(current: Failures, control: Failures) -> float:
    """Return how far a pass rate is below the control's; a side without iterations passes."""
    return current.share - control.share
