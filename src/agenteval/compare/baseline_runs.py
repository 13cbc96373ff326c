"""Which scores of the earlier runs can be compared with a run, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agenteval.compare.pairing import fingerprints_of
from agenteval.compare.pool import Pool
from agenteval.compare.statistics.model import Scores
from agenteval.results.model import PoolCase, PoolEntry, Results

# Case id → metric id → score of each iteration.
RunScores = Mapping[str, Mapping[str, Scores]]


@dataclass(frozen=True)
class EarlierRuns:
    """The sound scores of comparable runs, the oldest first, and in words what was left out."""

    run_ids: tuple[str, ...]
    scores: tuple[RunScores, ...]
    notes: tuple[str, ...] = ()


def comparable_runs(current: Results, own: RunScores, pool: Pool) -> EarlierRuns:
    """The runs of the pool, as far as they asked and judged what the current run does.

    Args:
        current: the run in question.
        own: its scores.
        pool: earlier runs; a case without a fingerprint is taken for the same.
    """
    prints = fingerprints_of(current)
    foreign: set[str] = set()
    broken = 0
    runs: dict[str, RunScores] = {}
    for entry in pool.runs:
        same, others = _same_cases(entry, prints)
        foreign |= others
        runs[entry.run_id], unsound = _sound(same)
        broken += unsound
    kept = _of_usual_length(runs, own)
    notes = list(pool.notes)
    if foreign:
        cases = _count(len(foreign), "case")
        notes.append(f"{cases} changed since the baseline runs (question or metrics): not compared")
    if broken:
        notes.append(f"{_count(broken, 'score')} of earlier runs outside 0..1, left out")
    if len(kept) < len(runs):
        other = len(runs) - len(kept)
        notes.append(f"{_count(other, 'earlier run')} left out: another number of iterations than the others")
    return EarlierRuns(tuple(kept), tuple(kept.values()), tuple(notes))


def _same_cases(entry: PoolEntry, prints: Mapping[str, str]) -> tuple[dict[str, PoolCase], set[str]]:
    """The cases of a run that the current one has too, and the ids of those that mean something else there."""
    common = {case_id: case for case_id, case in entry.cases.items() if case_id in prints or not prints}
    foreign = {
        case_id
        for case_id, case in common.items()
        if case.fingerprint and prints.get(case_id, "") not in {"", case.fingerprint}
    }
    return {case_id: case for case_id, case in common.items() if case_id not in foreign}, foreign


def _sound(cases: Mapping[str, PoolCase]) -> tuple[RunScores, int]:
    """The scores that are any, and how many are not."""
    sound: dict[str, Mapping[str, Scores]] = {}
    broken = 0
    for case_id, case in cases.items():
        sound[case_id] = {name: tuple(filter(_is_score, scores)) for name, scores in case.scores.items()}
        broken += sum(len(scores) - len(sound[case_id][name]) for name, scores in case.scores.items())
    return sound, broken


def _is_score(value: float) -> bool:
    # False for NaN as well.
    return 0 <= value <= 1


def _of_usual_length(runs: Mapping[str, RunScores], own: RunScores) -> Mapping[str, RunScores]:
    """Without the few runs whose cases ran another number of times than the current run's.

    Where most of them differ from the current run all are kept: the comparison then takes that into account.
    """
    lengths = {run_id: _lengths(run) for run_id, run in runs.items()}
    usual = _most_common(_lengths(own))
    if usual is None or _most_common(sum(lengths.values(), Counter())) != usual:
        return runs
    return {run_id: run for run_id, run in runs.items() if _most_common(lengths[run_id]) in {usual, None}}


def _lengths(run: RunScores) -> Counter[int]:
    return Counter(len(scores) for metrics in run.values() for scores in metrics.values() if scores)


def _most_common(lengths: Mapping[int, int]) -> int | None:
    return max(lengths, key=lambda length: (lengths[length], length), default=None)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
