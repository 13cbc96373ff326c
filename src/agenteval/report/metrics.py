"""Metrics, resources and spending of a run, beside the base that it was compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass
from agenteval.report.parts import State
from agenteval.report.words import (
    NOTHING,
    age,
    change,
    count,
    duration,
    from_cache,
    got_worse,
    money,
    number,
    percent,
    resource,
    signed,
)
from agenteval.results.comparison import CaseMove, ComparedMetric, ComparedResource, Comparison, FailedOf
from agenteval.results.model import Results

_LONGEST_LABEL = 80
_LEAST_SPAN = 0.05
_COMMIT = 7


@dataclass(frozen=True)
class Base:
    """What a run was compared with.

    Attributes:
        name: its branch, or ``baseline``.
        age: ``3 days old``; empty if unknown.
        runs: the number of earlier runs: ``3 runs``; empty if unknown.
        distance: number of commits from its commit to the base commit; ``between`` are the newest of them.
        beside: the commit that ran beside the change; empty if none did.
        word: the state of the comparison; ``note`` tells it of a comparison without a broken case.
        needs: the conditions under which the comparison fails the gate, one sentence each.
        resources: time, tokens and cost per answer in both runs.
        new: names of the cases that it lacks, that only it has, and that changed and are not compared.
        is_suspected: whether anything may be worse.
        is_changed: whether any case broke or was repaired.
    """

    name: str
    ref: str
    commit: str
    run_id: str
    created_at: str
    age: str
    runs: str
    distance: int | None
    between: tuple[str, ...]
    beside: str
    word: str
    note: str
    needs: tuple[str, ...]
    resources: tuple[ComparedResource, ...]
    new: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    is_suspected: bool
    is_changed: bool

    @classmethod
    def of(cls, comparison: Comparison, now: str) -> Base:
        """Return the base of a comparison; ``now`` is the start of the run."""
        baseline = comparison.baseline
        notes = {"proven": "no single case is proven worse", "unproven": "comparison unproven"}
        old = age(baseline.created_at, now)
        return cls(
            name=base_name(comparison),
            ref=baseline.ref or "",
            commit=baseline.commit or "",
            run_id=baseline.run_id,
            created_at=baseline.created_at,
            age=f"{old} old" if old else "",
            runs=count(len(comparison.baseline_runs), "run") if comparison.baseline_runs else "",
            distance=baseline.distance,
            between=tuple(baseline.between),
            beside=comparison.base_sha or "",
            word=comparison.state,
            note=notes.get(comparison.state, comparison.headline),
            needs=_needs(comparison),
            resources=tuple(comparison.resources),
            new=tuple(case.name for case in comparison.cases if case.change == "new"),
            removed=tuple(case.name for case in comparison.cases if case.change == "removed"),
            changed=tuple(case.name for case in comparison.cases if case.change == "changed"),
            is_suspected=bool(comparison.suspicions),
            is_changed=any(case.change in {"broke", "repaired"} for case in comparison.cases),
        )

    @property
    def suite_changes(self) -> str:
        """``2 new cases, 1 missing case``; empty if the suites are the same."""
        counted = ((self.new, "new case"), (self.removed, "missing case"), (self.changed, "changed case"))
        return ", ".join(count(len(names), noun) for names, noun in counted if names)


def base_name(comparison: Comparison | None) -> str:
    """Return the name of the other side: its branch, or ``baseline``."""
    ref = comparison.baseline.ref if comparison else None
    return one_line((ref or "baseline").removeprefix("refs/heads/"), _LONGEST_LABEL)


def _needs(comparison: Comparison) -> tuple[str, ...]:
    if comparison.stage == "alone":
        return ("Nothing could run side by side with the base, so a bad day cannot be told from a worse change.",)
    return (
        "Earlier runs only make a result suspicious. The gate fails if a mean or a case is proven worse side by side "
        "with the base commit.",
    )


@dataclass(frozen=True)
class MetricRow:
    """One metric of the run, and what the comparison found about its mean.

    Attributes:
        n: number of scores; ``mean`` and ``pass_rate`` are of all of them.
        compared: its comparison; ``None`` without one.
        broke: number of cases that broke and whose score of the metric fell.
        of_cases: the state of the comparison, if it suspects a case in this metric; else empty.
        reach: the largest change of any metric, so that all drawings have one axis.
        names: id of a moved case → its name.
        beside: the commit that ran beside the change; empty if none did.
    """

    id: str
    n: int
    mean: float | None
    pass_rate: float | None
    compared: ComparedMetric | None = None
    broke: int = 0
    reach: float = 1.0
    names: tuple[str, ...] = ()
    beside: str = ""
    of_cases: str = ""

    @property
    def is_resource(self) -> bool:
        """Whether it is an amount with a limit, not a score."""
        return self.compared is not None and self.compared.allowed is not None

    @property
    def gating(self) -> bool:
        """Whether its comparison can fail the gate."""
        return self.compared is not None and self.compared.gating

    @property
    def baseline(self) -> float | None:
        """The mean of the base over the cases that both runs scored."""
        return self.compared.baseline if self.compared else None

    @property
    def current(self) -> float | None:
        """The mean over the cases that both runs scored; without a base, over all cases."""
        return self.compared.current if self.compared else self.mean

    @property
    def difference(self) -> float | None:
        """``current`` minus ``baseline``."""
        return self.compared.difference if self.compared else None

    @property
    def word(self) -> str:
        """The state of its comparison: of its mean, unless single cases broke."""
        if self.compared is None:
            return ""
        found = "proven" if self.broke else self.of_cases or self.compared.state
        return found if self.gating else "only reported"

    @property
    def state(self) -> State:
        """Whether it is proven worse or better."""
        if self.compared is None:
            return "neutral"
        return "bad" if self.broke or self.compared.fell else "good" if self.compared.rose else "neutral"

    @property
    def change(self) -> str:
        """The difference of the means; of a resource, the relative one."""
        return "" if self.compared is None else self._shown(self.compared.difference)

    @property
    def range(self) -> str:
        """The interval of the difference: ``-0.30 to -0.10``."""
        other = self.compared
        if other is None or other.low is None or other.high is None:
            return ""
        return f"{self._shown(other.low)} to {self._shown(other.high)}"

    @property
    def change_with_range(self) -> str:
        """``-0.20 (-0.30 to -0.10)``."""
        return f"{self.change} ({self.range})" if self.range else self.change

    @property
    def p(self) -> str:
        """The probability of such a drop without a change, and its limit."""
        if self.compared is None or self.compared.p is None or self.compared.limit is None:
            return ""
        from agenteval.gate.words import percent as per_cent
        from agenteval.gate.words import share

        return f"{share(self.compared.p, self.compared.limit)}, limit {per_cent(self.compared.limit)}"

    @property
    def basis(self) -> str:
        """The number of cases, runs of the baseline, iterations and passes."""
        metric = self.compared
        if metric is None:
            return ""
        if not metric.gating:
            return count(metric.n, "case")
        parts = [count(metric.n, "case")]
        parts += [count(metric.runs, "baseline run")] if metric.runs is not None else []
        parts += [count(metric.iterations, "iteration")] if metric.iterations is not None else []
        parts += [f"{count(metric.passes, 'pass', 'passes')} each"] if metric.passes is not None else []
        return ", ".join(parts)

    @property
    def catches(self) -> str:
        """The drop that is usually found."""
        drop = self.compared.detectable_drop if self.compared and self.gating else None
        return "" if drop is None else f"{drop:.2f}"

    @property
    def finding(self) -> str:
        """What the comparison found, in one sentence."""
        broke = f"{count(self.broke, 'case')} broke" if self.broke else ""
        found = "" if self.broke and self._found not in {"fell", "rose"} else self._found
        return "; ".join(filter(None, (broke, found)))

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """Each number with its meaning."""
        both = f"{number(self.baseline)} → {number(self.current)}"
        told = (
            (f"mean {number(self.mean)}", f"the mean of all {count(self.n, 'score')} of this run"),
            (f"passed {percent(self.pass_rate)}", "the share of scores at or above their threshold"),
            ("" if self.baseline is None else both, "the means of the cases that both runs scored"),
            (self.range, "the changes that fit the data; if all are below 0, a drop is proven"),
            (f"p {self.p}" if self.p else "", "how often a drop this large appears although nothing changed"),
            (self.catches, "a real drop of this size is found in 8 of 10 runs"),
            (self.basis if self._found else "", "what the comparison is based on"),
        )
        return tuple((value, meaning) for value, meaning in told if value)

    @property
    def moved(self) -> tuple[tuple[str, str, str, str], ...]:
        """The cases that moved as the proven mean did: name, both sides and difference, the largest share first."""
        moves = self.compared.moved if self.compared else []
        return tuple(
            (
                name,
                self._side(move.baseline, move.baseline_failures),
                self._side(move.current, move.current_failures),
                self._moved_by(move),
            )
            for name, move in zip(self.names, moves, strict=True)
        )

    @property
    def moved_title(self) -> str:
        """``3 cases lower in f1_score side by side with 1a2b3c4``."""
        lower = "lower" if (self.difference or 0.0) < 0 else "higher"
        where = f"side by side with {self.beside[:_COMMIT] or 'the base'}"
        return f"{count(len(self.names), 'case')} {lower} in {self.id} {where}"

    @property
    def moved_before(self) -> str:
        """The title of the column of the other side."""
        return self.beside[:_COMMIT] or "Base"

    @property
    def _found(self) -> str:
        other = self.compared
        if other is None:
            return ""
        if other.fell or other.rose:
            return "fell" if other.difference < 0 else "rose"
        return (self.of_cases or other.state) if other.gating else ""

    def _shown(self, value: float) -> str:
        return change(value) if self.is_resource else signed(value)

    def _side(self, mean: float, failures: FailedOf | None) -> str:
        counted = f", failed {failures.failed} of {failures.of}" if failures else ""
        return f"{resource(self.id, mean) if self.is_resource else number(mean)}{counted}"

    def _moved_by(self, move: CaseMove) -> str:
        if not self.is_resource:
            return signed(move.current - move.baseline)
        return change(move.current / move.baseline - 1) if move.baseline else NOTHING


def metric_rows(results: Results) -> tuple[MetricRow, ...]:
    """Return every metric in the order of the summary, then the compared resources that have a limit."""
    comparison = results.comparison
    if comparison is None:
        return tuple(
            MetricRow(name, metric.n, metric.mean, metric.pass_rate)
            for name, metric in results.summary.metrics.items()
        )
    compared = {metric.id: metric for metric in comparison.metrics}
    names = {case.id: case.name for case in comparison.cases}
    far = _reach(comparison.metrics)
    is_open = comparison.state in {"suspicious", "unproven"}
    suspected = {item.metric for item in comparison.suspicions if item.case is not None and is_open}
    broke = Counter(fact.id for case in comparison.cases if case.change == "broke" for fact in got_worse(case))

    def row(name: str, n: int, mean: float | None, pass_rate: float | None) -> MetricRow:
        other = compared.get(name)
        moved = tuple(names.get(move.id, move.id) for move in (other.moved if other else ()))
        beside = comparison.base_sha or ""
        of_cases = comparison.state if name in suspected else ""
        return MetricRow(name, n, mean, pass_rate, other, broke[name] if other else 0, far, moved, beside, of_cases)

    rows = [row(name, metric.n, metric.mean, metric.pass_rate) for name, metric in results.summary.metrics.items()]
    rest = [metric for metric in comparison.metrics if metric.gating and metric.id not in results.summary.metrics]
    return (*rows, *(row(metric.id, 0, None, None) for metric in rest))


def _reach(metrics: Sequence[ComparedMetric]) -> float:
    sides = [
        side
        for metric in metrics
        if metric.allowed is None
        for side in (metric.difference, *filter(None, (metric.low, metric.high)))
    ]
    return max([_LEAST_SPAN, *map(abs, sides)])


_RESOURCES = {"latency_ms": "latency per answer", "tokens": "tokens per answer", "cost_usd": "cost per answer"}

#: What money or time was spent on, in this run and on the other side, and a note.
SpendingRow = tuple[str, str, str, str]


def resource_amount(item: ComparedResource, value: float) -> str:
    """Return its amount on one side, with a unit."""
    if item.name == "cost_usd":
        return money(value)
    if item.name == "latency_ms":
        return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
    return number(value) if value < 10 else f"{value:,.0f}"


def spending(results: Results) -> Iterator[SpendingRow]:
    """Yield where money and time went; what is unknown is left out."""
    for item in results.comparison.resources if results.comparison else ():
        now, before = resource_amount(item, item.current), resource_amount(item, item.baseline)
        yield _RESOURCES[item.name], now, before, "" if item.change is None else change(item.change)
    # Of a large run, not all cases are in memory.
    cases = [case for _, case in results.cases()]
    turns = [turn for case in cases for turn in case.turns] if len(cases) == results.summary.cases else []
    usage = results.summary.usage
    judges = sum(score.cost_usd or 0.0 for turn in turns for score in turn.scores)
    if usage.cost_usd:
        yield "cost", money(usage.cost_usd), "", f"judges {money(judges)}" if judges else ""
    if usage.input_tokens or usage.output_tokens:
        yield "tokens", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out", "", ""
    if usage.llm_calls or usage.cached_calls:
        yield "calls of models", f"{usage.llm_calls:,}", "", from_cache(usage)
    yield "time", duration(results.run.duration_s), "", ""
