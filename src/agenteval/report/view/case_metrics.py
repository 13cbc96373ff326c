"""The result of each metric for one case, over all its turns and iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.report.view import view
from agenteval.results.case import CaseResult, Score

#: The result of a metric: the worst over all scores.
Outcome = str

_MARKS: Mapping[Outcome, str] = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "-"}


@dataclass(frozen=True, slots=True)
class CaseMetric:
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


def case_metrics(case: CaseResult) -> tuple[CaseMetric, ...]:
    """Return every metric of a case, in the order in which they scored."""
    found: dict[str, list[Score]] = {}
    for score in case.scores:
        found.setdefault(score.id, []).append(score)
    return tuple(_metric(name, scores) for name, scores in found.items())


def _metric(name: str, scores: Sequence[Score]) -> CaseMetric:
    return CaseMetric(name, _outcome(scores), _values(scores))


def _outcome(scores: Sequence[Score]) -> Outcome:
    if any(score.status == "error" for score in scores):
        return "error"
    decided = [score.passed for score in scores if score.passed is not None]
    if decided:
        return "passed" if all(decided) else "failed"
    return "measured" if any(score.status == "scored" for score in scores) else "skipped"


def _values(scores: Sequence[Score]) -> str:
    scored = [score for score in scores if score.status == "scored" and score.score is not None]
    if len({view.score_values(score) for score in scored}) <= 1:
        return view.score_values((scored or scores)[0])
    mean = sum(score.score or 0.0 for score in scored) / len(scored)
    decided = [score.passed for score in scored if score.passed is not None]
    passed = f" ({decided.count(True)} of {len(decided)} passed)" if decided else ""
    return f"{view.number(mean)} on average{passed}"
