"""Counts what the metrics of a suite measured, and in how many cases they decided."""

from __future__ import annotations

from agenteval.results.case import CaseResult, Score

#: Key in the details of a rule-based score: the rules that had nothing to measure in the reply.
UNMEASURED = "unmeasured"


class MetricUse:
    """The metrics of one suite over its cases, which may be added in any order.

    Args:
        threshold: the suite's threshold of the aggregated score; ``None`` if the verdicts of metrics decide.

    Attributes:
        undecided: number of passed cases without a verdict; see ``is_undecided``.
    """

    def __init__(self, threshold: float | None = None) -> None:
        self._threshold = threshold
        self._skipped: set[str] = set()
        self._measured: set[str] = set()
        self._parts: dict[str, frozenset[str]] = {}
        self.undecided = 0

    def add(self, case: CaseResult) -> None:
        """Count a case."""
        self.undecided += is_undecided(case, self._threshold)
        for score in case.scores:
            if score.status != "skipped":
                self._measured.add(score.id)
                if score.status == "scored" and score.gating:
                    parts = _unmeasured_parts(score)
                    self._parts[score.id] = parts & self._parts.get(score.id, parts)
            elif score.gating and not score.not_asked:
                self._skipped.add(score.id)

    @property
    def unmeasured(self) -> list[str]:
        """The metrics that can decide and measured nothing in any reply of the suite, sorted by id.

        A metric was skipped for every reply, or a part of it, such as a rule, had nothing to measure in any reply.
        Metrics that a limit left out are not among them: ``Summary.judging`` counts their cases.
        """
        parts = (f"{name} ({part})" for name, found in self._parts.items() for part in found)
        return sorted((*(self._skipped - self._measured), *parts))


def is_undecided(case: CaseResult, threshold: float | None) -> bool:
    """Return whether a case passed although no metric gave a verdict: all of them are informational.

    Args:
        case: the case with all scores.
        threshold: the threshold of the aggregated score, if the suite of the case has one.
    """
    return case.status == "passed" and not threshold and all(score.passed is None for score in case.scores)


def _unmeasured_parts(score: Score) -> frozenset[str]:
    listed = (score.details or {}).get(UNMEASURED) if score.kind == "rule" else None
    return frozenset(part for part in listed if isinstance(part, str)) if isinstance(listed, list) else frozenset()
