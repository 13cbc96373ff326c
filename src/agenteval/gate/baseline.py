"""The baseline: the newest runs of the base branch, and the first ones since its last change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from agenteval.core.records import dataclass, field
from agenteval.gate.pairing import Match, own_cases
from agenteval.gate.run_scores import RESOURCE, baseline_run
from agenteval.gate.values import Constants
from agenteval.results.comparison import BaselineCase, BaselineRun, Comparison
from agenteval.results.model import Results

# Case id → metric id → value of each iteration; ``None`` if it was lost.
Scores = Mapping[str, Mapping[str, tuple[float | None, ...]]]
#: Runs at the beginning that a look back compares with.
FIRST_RUNS = 3
#: A look back is made at most after so many merges.
_MERGES = 3
_WINDOW = Constants().window


@dataclass(frozen=True)
class UsableRuns:
    """Usable baseline runs, oldest first, and messages about omitted ones."""

    runs: tuple[BaselineRun, ...]
    notes: tuple[str, ...] = ()

    def always_applied(self, planned: Mapping[str, int]) -> Mapping[str, frozenset[str]]:
        """Return for each case the ids of the metrics that were skipped in no iteration of any run.

        Args:
            planned: case id → iterations of the case today; earlier runs may have made fewer of all cases.
        """
        always: dict[str, dict[str, bool]] = {}
        for entry in self.runs:
            usual = entry.made_with.iterations if entry.made_with is not None else None
            for case_id, case in entry.cases.items():
                asked, known = _asked(case), always.setdefault(case_id, {})
                whole = max(asked.values(), default=0) if usual is None else min(usual, planned.get(case_id, usual))
                for name, count in asked.items():
                    known[name] = known.get(name, True) and count >= whole
        return {case_id: frozenset(name for name, yes in known.items() if yes) for case_id, known in always.items()}


def _asked(case: BaselineCase) -> Mapping[str, int]:
    return {name: len(case.scores.get(name, ())) + case.lost.get(name, 0) for name in {**case.scores, **case.lost}}


def usable_runs(
    baseline: Results, current_run_id: str, unrelated: Collection[str] = (), window: int = _WINDOW
) -> UsableRuns:
    """Return the newest runs of a baseline: those before it and the run itself.

    Args:
        unrelated: commits whose runs do not count, because the base branch does not contain them any more.
    """
    entries = _entries(baseline)
    if current_run_id != baseline.run.id:
        entries = [entry for entry in entries if entry.run_id != current_run_id]
    kept = [entry for entry in entries if entry.commit not in unrelated] or entries
    notes = []
    if gone := len(entries) - len(kept):
        what = "its commit is" if gone == 1 else "their commits are"
        notes.append(f"{gone} of the baseline's runs left out: {what} not in the history of the base commit")
    usable = [entry for entry in kept if not _is_mostly_lost(entry)]
    if lost := len(kept) - len(usable):
        notes.append(f"{lost} of the baseline's runs left out: most of the iterations have no score")
    return UsableRuns(tuple(usable)[-window:], tuple(notes))


def _entries(baseline: Results) -> list[BaselineRun]:
    runs = list(baseline.baseline_runs)
    if all(entry.run_id != baseline.run.id for entry in runs):
        runs.append(baseline_run(baseline, {}))
    by_id = {entry.run_id: entry for entry in sorted(runs, key=lambda entry: entry.created_at)}
    return list(by_id.values())


def _is_mostly_lost(entry: BaselineRun) -> bool:
    scored = sum(len(values) for case in entry.cases.values() for values in case.scores.values())
    return not scored or sum(number for case in entry.cases.values() for number in case.lost.values()) > scored


def first_runs(baseline: Results) -> list[BaselineRun]:
    """Return the first runs of a baseline since its start, for a look back."""
    entries = _entries(baseline)
    start = entries[-1].start if entries else None
    return [entry for entry in entries if entry.start == start][:FIRST_RUNS]


def is_look_due(own: BaselineRun, baseline: Results) -> bool:
    """Return whether a run of the base branch may look back: runs enough, and not right after the last look."""
    entries = [entry for entry in _entries(baseline) if entry.run_id != own.run_id]
    start = first_runs(baseline)
    newest = {entry.run_id for entry in entries[-(FIRST_RUNS - 1) :]}
    is_apart = len(start) == FIRST_RUNS and not newest & {entry.run_id for entry in start}
    return is_apart and not any(entry.looked for entry in entries[-_MERGES:])


def extended_baseline(
    own: BaselineRun,
    baseline: Results | None,
    comparison: Comparison | None,
    passes: Iterable[BaselineRun] = (),
) -> list[BaselineRun]:
    """Return the baseline of a run of the base branch: that of its baseline and the run itself.

    A mean that is proven, declared or accepted to have changed begins a new one. A case that is proven or accepted
    to have changed is removed from earlier runs.

    Args:
        passes: the passes of a proof, which are of the same agent; a new baseline begins with them too.
    """
    if baseline is None:
        return [own.model_copy(update={"start": own.commit})]
    if comparison is not None and comparison.cause is not None:
        begun = own.model_copy(update={"cause": comparison.cause})
        return [entry.model_copy(update={"start": own.commit}) for entry in [begun, *passes]]
    # Runs of other tools have no fingerprints, so later runs cannot check that their questions are the same.
    others = [entry for entry in _entries(baseline) if entry.run_id != own.run_id and _tells_questions_apart(entry)]
    changed = comparison.changed_cases if comparison is not None else frozenset()
    start = (others[-1].start or others[0].commit) if others else own.commit
    own = own.model_copy(update={"start": start, "looked": comparison is not None and bool(comparison.decline)})
    entries = [*(without_cases(entry, changed) for entry in others), own]
    first = [entry for entry in entries[:-_WINDOW] if entry.start == start][:FIRST_RUNS]
    return [*first, *entries[-_WINDOW:]]


def _tells_questions_apart(entry: BaselineRun) -> bool:
    return any(case.fingerprint for case in entry.cases.values())


def without_cases(entry: BaselineRun, case_ids: Collection[str]) -> BaselineRun:
    """Return an entry without some cases."""
    if not case_ids:
        return entry
    return entry.model_copy(
        update={"cases": {case_id: case for case_id, case in entry.cases.items() if case_id not in case_ids}}
    )


@dataclass(frozen=True)
class EarlierScores:
    """The comparable scores of runs of a baseline, oldest first, and messages about omitted ones."""

    scores: tuple[Scores, ...]
    notes: tuple[str, ...] = ()


def comparable_runs(current: Results, baseline: UsableRuns) -> EarlierScores:
    """Return the runs of a baseline, limited to cases and metrics that match the current run."""
    now = own_cases(current)
    changes = _Changes()
    broken = 0
    runs: list[Scores] = []
    for entry in baseline.runs:
        scores, unsound = _sound(_comparable_cases(entry, now, changes))
        runs.append(scores)
        broken += unsound
    notes = [*baseline.notes, *changes.notes()]
    if broken:
        notes.append(f"{_count(broken, 'score')} of earlier runs outside 0..1, left out")
    return EarlierScores(tuple(runs), tuple(notes))


@dataclass
class _Changes:
    questions: set[str] = field(default_factory=set)
    metrics: dict[str, set[str]] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        if self.questions:
            yield f"the question of {_count(len(self.questions), 'case')} changed since earlier runs: not compared"
        if self.metrics:
            number = _count(len(set[str]().union(*self.metrics.values())), "case")
            names = ", ".join(sorted(self.metrics))
            yield f"the rules of {number} changed since earlier runs ({names}): not compared"


def _comparable_cases(
    entry: BaselineRun, now: Mapping[str, BaselineCase], changes: _Changes
) -> dict[str, dict[str, tuple[float | None, ...]]]:
    found: dict[str, dict[str, tuple[float | None, ...]]] = {}
    for case_id, case in entry.cases.items():
        if now and case_id not in now:
            continue
        match = Match.of(now.get(case_id), case)
        if not match.question:
            changes.questions.add(case_id)
            continue
        for name in match.changed:
            changes.metrics.setdefault(name, set()).add(case_id)
        found[case_id] = {
            name: (*case.scores.get(name, ()), *[None] * case.lost.get(name, 0))
            for name in {**case.scores, **case.lost}
            if name.startswith(RESOURCE) or match.allows(name)
        }
    return found


def _sound(cases: Mapping[str, Mapping[str, tuple[float | None, ...]]]) -> tuple[Scores, int]:
    broken = sum(
        value is not None and not is_valid(name, value)
        for metrics in cases.values()
        for name, values in metrics.items()
        for value in values
    )
    if not broken:
        return cases, 0
    return {
        case_id: {name: tuple(valid(name, value) for value in values) for name, values in metrics.items()}
        for case_id, metrics in cases.items()
    }, broken


def valid(name: str, value: float | None) -> float | None:
    """Return a value of a metric, or ``None`` for an invalid one."""
    return value if value is not None and is_valid(name, value) else None


def is_valid(name: str, value: float) -> bool:
    """Return whether a number is a score of 0..1, or a finite amount."""
    # NaN is invalid too.
    return 0 <= value < float("inf") if name.startswith(RESOURCE) else 0 <= value <= 1


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
