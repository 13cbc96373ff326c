"""Cases in reports: their kinds, iterations, metrics and groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal, Self

from agenteval.core import escape
from agenteval.core.records import dataclass, field
from agenteval.gate.failures import Required
from agenteval.report import words
from agenteval.report.words import count
from agenteval.results.case import CaseResult, IterationResult, Score, TurnResult
from agenteval.results.comparison import CaseNote, ComparedCase, ComparedMetric, Comparison
from agenteval.results.model import Results
from agenteval.results.rollup import without_attempts, without_traceback

Kind = Literal[
    "broke", "failed", "error", "removed", "fell", "suspicious",
    "cleared", "known", "quarantined", "accepted", "changed", "skipped", "gone", "repaired", "new",
]  # fmt: skip

NOT_PASSED: Final = frozenset({"failed", "error"})


@dataclass(frozen=True)
class KindWords:
    """How reports show a kind; somebody has to look at those with ``attention``."""

    icon: str
    words: str
    attention: bool = False


#: All kinds, the most important first. A case has the first one that fits.
KINDS: Final[Mapping[Kind, KindWords]] = {
    "broke": KindWords("❌", "broke", attention=True),
    "failed": KindWords("❌", "failed", attention=True),
    "error": KindWords("🔌", "could not be run", attention=True),
    "removed": KindWords("➖", "removed", attention=True),
    "fell": KindWords("📉", "worse", attention=True),
    "suspicious": KindWords("🎲", "may be worse", attention=True),
    "cleared": KindWords("⚪", "not proven worse"),
    "known": KindWords("⚪", "known failure"),
    "quarantined": KindWords("⚪", "in quarantine"),
    "accepted": KindWords("⚪", "accepted"),
    "changed": KindWords("✏️", "rules changed"),
    "skipped": KindWords("⚪", "skipped"),
    "gone": KindWords("➖", "removed, did not pass before"),
    "repaired": KindWords("✅", "repaired"),
    "new": KindWords("➕", "new"),
}


def fallen_metrics(comparison: Comparison | None) -> list[ComparedMetric]:
    """Return the metrics whose mean is proven to have fallen, or whose amount to have risen."""
    metrics = comparison.metrics if comparison else []
    return [metric for metric in metrics if metric.gating and metric.fell]


@dataclass(frozen=True)
class Kinds:
    """Finds the kind of each case of a run.

    Attributes:
        fallen: a case that moved as a mean fell → the metric.
        blocks: whether the check fails, also because of what may be worse.
    """

    quarantined: Collection[str] = frozenset()
    fallen: Mapping[str, str] = field(default_factory=dict)
    required: Required = field(default_factory=Required)
    blocks: bool = False

    @classmethod
    def of(cls, results: Results) -> Self:
        """Return what the kinds of a run's cases depend on."""
        rules = results.gate.rules if results.gate else None
        fallen: dict[str, str] = {}
        for metric in fallen_metrics(results.comparison):
            for move in metric.moved:
                fallen.setdefault(move.id, metric.id)
        if rules is None:
            return cls(fallen=fallen)
        blocks = results.gate is not None and results.gate.exit_status != 0
        return cls(frozenset(rules.quarantine), fallen, Required(patterns=rules.required), blocks)

    def kind(self, case: CaseResult, compared: ComparedCase | None) -> Kind | None:
        """Return the kind of a case; ``None`` if it passed as before."""
        notes = compared.notes if compared else []
        if case.status in NOT_PASSED and (excused := self._excused(case, notes)):
            return excused
        if compared is not None and compared.change == "broke":
            return "broke"
        if case.status == "error":
            return "error"
        # It fails the gate by itself, whatever a mean or the passes beside the base say.
        if case.status == "failed" and self.required.names(case):
            return "failed"
        if case.id in self.fallen:
            return "fell"
        if "suspicious" in notes:
            return "suspicious"
        if case.status == "failed":
            return _failed(compared)
        return "skipped" if case.status == "skipped" else _passed(compared)

    def _excused(self, case: CaseResult, notes: Collection[CaseNote]) -> Kind | None:
        if "quarantined" in notes or case.id in self.quarantined:
            return "quarantined"
        return "accepted" if "accepted" in notes else None


def _passed(compared: ComparedCase | None) -> Kind | None:
    match compared.change if compared else None:
        case "changed" | "repaired" | "new" as kind:
            return kind
    return None


def _failed(compared: ComparedCase | None) -> Kind:
    if compared is None or compared.change in {"new", "changed"}:
        return "failed"
    if compared.status_before == "failed" and "flaky" not in compared.notes:
        return "known"
    # The comparison looked at it, and it is not worse than before.
    return "cleared" if compared.status_before != "skipped" else "failed"


def kind_of_removed(compared: ComparedCase) -> Kind:
    """Return the kind of a case that only the baseline has."""
    return "removed" if compared.status_before == "passed" else "gone"


_Essence = tuple[object, ...]


def distinct_iterations(case: CaseResult) -> Iterator[tuple[IterationResult, str]]:
    """Yield the first of all iterations that are alike, and which they are in words.

    Iterations are alike if questions, answers, tool calls and scores are the same. Times, tokens and reasons may
    differ. The words are empty for a case with one iteration.
    """
    groups: dict[_Essence, list[IterationResult]] = {}
    for iteration in case.iterations:
        groups.setdefault(_essence(iteration), []).append(iteration)
    total = len(case.iterations)
    for group in groups.values():
        yield group[0], _which([iteration.index + 1 for iteration in group], total)


def _which(numbers: list[int], total: int) -> str:
    if total == 1:
        return ""
    if len(numbers) == total:
        return f"{count(total, 'iteration')}, all alike"
    if len(numbers) == 1:
        return f"iteration {numbers[0]} of {total}"
    *first, last = numbers
    return f"iterations {', '.join(map(str, first))} and {last} of {total}, alike"


def _essence(iteration: IterationResult) -> _Essence:
    return (
        iteration.status,
        tuple(
            (
                turn.input,
                turn.response,
                turn.error,
                tuple((call.name, repr(call.args), repr(call.result), call.error) for call in turn.tool_calls),
                tuple((score.id, score.score, score.passed, score.status) for score in turn.scores),
            )
            for turn in iteration.turns
        ),
    )


#: The result of a metric: the worst over all scores.
Outcome = str

_MARKS: Mapping[Outcome, str] = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "-"}


@dataclass(frozen=True)
class CaseMetricRow:
    """One metric of a case.

    Attributes:
        outcome: ``passed``, ``failed``, ``error`` or ``skipped``; ``measured`` if the metric only reports a score.
        values: the score with its threshold: ``0.92 >= 0.80``; of several scores, their mean, and how many passed;
            the status without a score.
    """

    id: str
    outcome: Outcome
    values: str

    @property
    def mark(self) -> str:
        """The outcome as a sign."""
        return _MARKS.get(self.outcome, "·")

    def __str__(self) -> str:
        return f"{self.id} {self.values}"


def case_metrics(case: CaseResult) -> tuple[CaseMetricRow, ...]:
    """Return every metric of a case, in the order in which they scored."""
    found: dict[str, list[Score]] = {}
    for score in case.scores:
        found.setdefault(score.id, []).append(score)
    return tuple(_metric(name, scores) for name, scores in found.items())


def _metric(name: str, scores: Sequence[Score]) -> CaseMetricRow:
    return CaseMetricRow(name, _outcome(scores), _values(scores))


def _outcome(scores: Sequence[Score]) -> Outcome:
    if any(score.status == "error" for score in scores):
        return "error"
    decided = [score.passed for score in scores if score.passed is not None]
    if decided:
        return "passed" if all(decided) else "failed"
    return "measured" if any(score.status == "scored" for score in scores) else "skipped"


def _values(scores: Sequence[Score]) -> str:
    scored = [score for score in scores if score.status == "scored" and score.score is not None]
    if len({words.score_values(score) for score in scored}) <= 1:
        return words.score_values((scored or scores)[0])
    mean = sum(score.score or 0.0 for score in scored) / len(scored)
    decided = [score.passed for score in scored if score.passed is not None]
    passed = f" ({decided.count(True)} of {len(decided)} passed)" if decided else ""
    return f"{words.number(mean)} on average{passed}"


# Metrics that compare texts or numbers: what they say are figures.
_FIGURES = frozenset({"standard", "match", "performance", "consistency"})
_LONGEST_WORDS = 500


@dataclass(frozen=True)
class Wrong:
    """What went wrong first in a case.

    Attributes:
        metric: the metric that found it; ``agent`` for an error of the agent.
        turn: 1-based; ``None`` in a case of one turn.
        is_score: whether only a score tells it, without a reason.
    """

    metric: str
    words: str
    turn: int | None = None
    is_error: bool = False
    is_score: bool = False

    def __str__(self) -> str:
        return f"turn {self.turn}: {self.words}" if self.turn else self.words


def first_wrong(case: CaseResult, compared: ComparedCase | None) -> tuple[Wrong | None, TurnResult | None]:
    """Return what went wrong first, and in which turn.

    An error of the agent comes first, then the words of a judge or of a tool metric, which say more than figures.
    """
    iteration = case.telling_iteration
    turns = iteration.turns if iteration else []
    of_turn = _broken_score if iteration and iteration.status == "error" else _failed_score
    for turn in turns:
        place = turn.index + 1 if len(turns) > 1 else None
        wrong = _agent_error(turn, place) or of_turn(turn, place)
        if wrong is not None:
            return wrong, turn
    # No score fails by itself if a suite adds them up, or if the case broke side by side.
    facts = words.facts(case) or (tuple(words.got_worse(compared)) if compared else ())
    told = next((fact for fact in facts if fact.reason), facts[0] if facts else None)
    if told is None:
        return None, turns[0] if turns else None
    shown = next((turn for turn in turns if turn.index + 1 == told.turn), turns[0] if turns else None)
    found = Wrong(told.id, _words(told.id, told.values, told.reason), told.turn, is_score=not told.reason)
    return found, shown


def _agent_error(turn: TurnResult, place: int | None) -> Wrong | None:
    if not turn.error:
        return None
    return Wrong("agent", words_of_agent(turn.error), place, is_error=True)


def words_of_agent(error: str) -> str:
    """Return the error of an agent on one line, without traceback and attempts."""
    return _line(without_traceback(without_attempts(error)))


def _broken_score(turn: TurnResult, place: int | None) -> Wrong | None:
    score = next((score for score in turn.scores if score.status == "error"), None)
    if score is None:
        return None
    return Wrong(score.id, _line(f"{score.id}: {words.score_reason(score) or 'error'}"), place, is_error=True)


def _failed_score(turn: TurnResult, place: int | None) -> Wrong | None:
    failed = [score for score in turn.scores if score.passed is False]
    if not failed:
        return None
    score = min(failed, key=_figures)
    reason = words.score_reason(score)
    return Wrong(score.id, _words(score.id, words.score_values(score), reason), place, is_score=not reason)


def _figures(score: Score) -> int:
    reason = words.score_reason(score)
    return 2 if not reason else int(score.kind in _FIGURES)


def _words(metric: str, values: str, reason: str) -> str:
    return _line(reason or f"{metric} {values}")


def _line(text: str) -> str:
    return escape.one_line(text, _LONGEST_WORDS)
