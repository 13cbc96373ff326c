"""The metrics of a run and their changes, for the HTML report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.report.view import view
from agenteval.report.view.charts import Interval, reach
from agenteval.report.view.comparison_rows import EvidenceRow, evidence_rows
from agenteval.report.view.parts import State
from agenteval.report.view.view import MetricRow, count
from agenteval.results.comparison import ComparedMetric
from agenteval.results.model import Results

_STATES: Mapping[str, State] = {"regressed": "bad", "improved": "good"}
_WORDS = {"regressed": "fell", "improved": "rose"}


@dataclass(frozen=True)
class Metric:
    """One metric of the run, and its change if there is a baseline.

    Attributes:
        change: the difference.
        range: its interval in words; ``interval`` is the drawing of both.
        basis: numbers of cases, runs and iterations of the comparison.
        catches: the smallest detectable drop.
        hint: what would exclude smaller drops.
        broke: number of cases that broke and whose score of the metric fell.
    """

    id: str
    n: int
    mean: float | None
    pass_rate: float | None
    baseline: float | None = None
    current: float | None = None
    change: str = ""
    range: str = ""
    interval: Interval | None = None
    p: str = ""
    verdict: str = ""
    state: State = "neutral"
    reason: str = ""
    basis: str = ""
    catches: str = ""
    hint: str = ""
    broke: int = 0

    @property
    def word(self) -> str:
        """What happened in one word: the mean ``fell``, ``rose`` or is ``unchanged``, or only cases ``broke``."""
        verdict, comma, note = self.verdict.partition(",")
        is_still = verdict not in _WORDS
        return "broke" if self.broke and is_still else f"{_WORDS.get(verdict, verdict)}{comma}{note}"

    @property
    def finding(self) -> str:
        """What the comparison found, in one sentence."""
        broke = f"{count(self.broke, 'case')} broke" if self.broke else ""
        return "; ".join(filter(None, (broke, self.reason)))

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """Each number with its meaning."""
        told = (
            (f"mean {view.number(self.mean)}", f"the mean of all {count(self.n, 'score')} of this run"),
            (f"passed {view.percent(self.pass_rate)}", "the share of scores at or above their threshold"),
            (self._sides, "the means of the cases that both runs scored"),
            (self.range, "the changes that fit the data; if all are below 0, a drop is proven"),
            (f"p {self.p}" if self.p else "", "how often so large a drop is seen although nothing changed"),
            (self.catches, "a real drop of this size is found in 8 of 10 runs"),
            (self.basis if self.reason else "", "what the comparison is based on"),
        )
        return tuple((value, meaning) for value, meaning in told if value)

    @property
    def _sides(self) -> str:
        both = f"{view.number(self.baseline)} → {view.number(self.current)}"
        return "" if self.baseline is None else both


def run_metrics(results: Results) -> tuple[Metric, ...]:
    """Return every metric in the order of the summary."""
    compared = {metric.id: metric for metric in results.comparison.metrics} if results.comparison else {}
    evidence = {row.id: row for row in evidence_rows(results.comparison)} if results.comparison else {}
    far = _reach(list(compared.values()))
    broke = Counter(
        fact.id
        for case in (results.comparison.cases if results.comparison else ())
        if case.change == "regressed"
        for fact in view.got_worse(case)
    )
    found = []
    for row in view.metric_rows(results):
        other = compared.get(row.id)
        if other is None:
            found.append(Metric(row.id, row.n, row.mean, row.pass_rate))
        else:
            found.append(_compared(row, other, evidence.get(row.id), far, broke[row.id]))
    return tuple(found)


def _compared(row: MetricRow, other: ComparedMetric, proof: EvidenceRow | None, far: float, broke: int) -> Metric:
    change, within, interval = view.signed(other.difference), "", None
    if other.interval is not None:
        low, high = other.interval
        within = f"{low:+.2f} to {high:+.2f}"
        interval = Interval(f"change {change} ({within})", other.difference, low, high, reach=far)
    return Metric(
        id=row.id,
        n=row.n,
        mean=row.mean,
        pass_rate=row.pass_rate,
        baseline=other.baseline,
        current=other.current,
        change=change,
        range=within,
        interval=interval,
        p=proof.p if proof else "",
        verdict=other.verdict if other.gating else f"{other.verdict}, only reported",
        state="bad" if broke and other.verdict != "improved" else _STATES.get(other.verdict, "neutral"),
        reason=other.reason.rstrip("."),
        basis=proof.basis if proof else count(other.n, "case"),
        catches=proof.catches if other.detectable_drop is not None and proof else "",
        hint=proof.hint if proof else "",
        broke=broke,
    )


def _reach(metrics: Sequence[ComparedMetric]) -> float:
    return reach([side for metric in metrics for side in (metric.difference, *(metric.interval or ()))])
