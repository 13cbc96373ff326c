"""The content of the HTML report about a whole run, in plain values; the template arranges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.charts import Interval, reach
from agenteval.report.view.comparison_rows import evidence_rows, resource_change, verdict_note
from agenteval.report.view.moved_cases import moved_cases
from agenteval.report.view.parts import Figure, Part, State, listed, table
from agenteval.report.view.view import GateView, count
from agenteval.results.comparison import ComparedMetric, Comparison
from agenteval.results.model import Results
from agenteval.results.verdict import Verdict

_MOST_ROWS = 200
_LONGEST_LABEL = 80
_STATES: Mapping[str, State] = {"regressed": "bad", "improved": "good"}
#: Words for a condition that is met, not met, or without data, and their states.
MET: Mapping[bool | None, str] = {True: "met", False: "not met", None: "no data"}
MET_STATES: Mapping[bool | None, State] = {True: "good", False: "bad", None: "neutral"}
#: The state of each verdict.
VERDICT_STATES: Mapping[Verdict, State] = {"passed": "good", "failed": "bad", "unproven": "neutral", "error": "bad"}
_TIME_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


@dataclass(frozen=True)
class Metric:
    """One metric of the run, and its change if there is a baseline.

    Attributes:
        change: the difference.
        range: its interval in words; ``interval`` is the drawing of both.
        basis: numbers of cases, runs and iterations of the comparison.
        catches: the smallest detectable drop.
        hint: what would exclude smaller drops.
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


@dataclass(frozen=True)
class RunPage:
    """The head and the parts of the report that do not need the cases (see ``Survey`` in ``report/html/data.py``).

    Attributes:
        facts: labels and values for the head.
        parts: the parts before the metrics: reasons, warnings, numbers, baseline.
        moved: the cases behind a proven change of a mean.
        criteria: conditions on whole suites.
    """

    title: str
    verdict: str
    state: State
    headline: str
    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    metrics: tuple[Metric, ...]
    moved: Part
    criteria: Part
    version: str

    @property
    def compared(self) -> bool:
        """Whether any metric has a baseline."""
        return any(metric.baseline is not None for metric in self.metrics)


def make_run_page(results: Results, gate: GateView) -> RunPage:
    """Return the content of the page without the cases.

    Args:
        results: the run.
        gate: the gate's decision.
    """
    run = results.run
    names = [one_line(suite.name, _LONGEST_LABEL) for suite in results.suites]
    title = names[0] if len(names) == 1 else count(len(names), "suite")
    facts = [
        ("Commit", short_commit(run.commit)),
        ("Ref", one_line(run.ref or "", _LONGEST_LABEL)),
        ("Repository", one_line(run.repository or "", _LONGEST_LABEL)),
        ("Started", moment(run.started_at)),
        ("Run", one_line(run.id, _LONGEST_LABEL)),
    ]
    headline = view.headline(results, gate)
    parts = (
        listed("reasons", "Reasons", gate.further_reasons, _MOST_ROWS),
        listed("warnings", "Warnings", gate.warnings, _MOST_ROWS, warns=True),
        Part("numbers", "Numbers", figures=tuple(_figures(results))),
        _baseline(results.comparison, run.started_at) if results.comparison else Part("baseline", "Baseline"),
    )
    return RunPage(
        title=title,
        verdict=gate.verdict,
        state=VERDICT_STATES[gate.verdict],
        headline=headline if headline != gate.verdict else "",
        facts=tuple((label, value) for label, value in facts if value),
        parts=tuple(part for part in parts if not part.empty),
        metrics=_metrics(results),
        moved=_moved(results.comparison),
        criteria=_criteria(results),
        version=results.tool.version,
    )


def moment(text: str) -> str:
    """Format an ISO 8601 timestamp; other texts stay unchanged, on one line."""
    found = _parsed(text)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else one_line(text, _LONGEST_LABEL)


def short_commit(sha: str | None) -> str:
    """Return the short form of a commit."""
    return "".join(filter(str.isalnum, (sha or "").encode("ascii", "ignore").decode()))[:12]


def _parsed(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _figures(results: Results) -> list[Figure]:
    summary, usage = results.summary, results.summary.usage
    evaluated = summary.cases - summary.skipped
    parts = ((summary.passed, "passed"), (summary.failed, "failed"), (summary.skipped, "skipped"))
    endings = [f"{amount:,} {name}" for amount, name in parts if amount]
    if summary.errors:
        endings.append(count(summary.errors, "error"))
    change = view.score_change(results)
    found = [
        Figure(
            "Pass rate",
            view.percent(summary.pass_rate),
            f"{summary.passed:,} of {evaluated:,} evaluated",
            "neutral" if summary.pass_rate is None else "good" if summary.pass_rate == 1 else "bad",
        ),
        Figure(
            "Mean score",
            view.number(summary.score),
            "" if change is None else f"{view.signed(change)} against the baseline",
        ),
        Figure("Cases", f"{summary.cases:,}", ", ".join(endings)),
    ]
    if results.comparison:
        changes = [case.change for case in results.comparison.cases]
        worse, better = changes.count("regressed"), changes.count("improved")
        found.append(Figure("Got worse", f"{worse:,}", f"{better:,} got better", "bad" if worse else "good"))
    tokens = usage.input_tokens + usage.output_tokens
    cost = view.money(usage.cost_usd) if usage.cost_usd else view.NOTHING
    asked = [f"{tokens:,} tokens"] if tokens else []
    if usage.llm_calls:
        asked.append(count(usage.llm_calls, "model call"))
    if cached := view.from_cache(usage):
        asked.append(cached)
    found.append(Figure("Cost", cost, ", ".join(asked)))
    found.append(Figure("Duration", view.duration(results.run.duration_s)))
    return found


def _baseline(comparison: Comparison, now: str) -> Part:
    baseline = comparison.baseline
    distance = "" if baseline.distance is None else f"{count(baseline.distance, 'commit')} before the base commit"
    facts = [
        ("Commit", short_commit(baseline.commit)),
        ("Ref", one_line(baseline.ref or "", _LONGEST_LABEL)),
        ("Run", one_line(baseline.run_id, _LONGEST_LABEL)),
        ("Made", moment(baseline.created_at)),
        ("Age", _age(baseline.created_at, now)),
        ("Distance", distance),
        ("Includes", ", ".join(filter(None, map(short_commit, baseline.between)))),
    ]
    return Part(
        "baseline",
        "Baseline",
        paragraphs=(verdict_note(comparison),) if comparison.verdict != "regressed" else (),
        facts=tuple((label, value) for label, value in facts if value),
        lines=tuple(map(resource_change, comparison.resources)),
    )


def _moved(comparison: Comparison | None) -> Part:
    tables = (
        replace(
            table(
                group.title,
                ("Case", group.before, "This change", "#Difference"),
                ((row.name, row.before, row.after, row.change) for row in group.rows.items),
                _MOST_ROWS,
            ),
            hidden=group.rows.hidden,
        )
        for group in moved_cases(comparison, _MOST_ROWS)
    )
    return Part("moved", "Cases behind the change", tables=tuple(tables))


def _criteria(results: Results) -> Part:
    found = [(suite.name, criterion) for suite in results.suites for criterion in suite.criteria]
    rows = (
        (MET[item.met], item.name, suite, view.number(item.value), view.number(item.threshold))
        for suite, item in found
    )
    columns = ("Result", "Criterion", "Suite", "#Value", "#Needed")
    shown = table("", columns, rows, _MOST_ROWS, (MET_STATES[item.met] for _, item in found))
    return Part("criteria", "Criteria", tables=(shown,) if found else ())


def _age(then: str, now: str) -> str:
    """Return the time between two moments; empty if unknown."""
    first, last = _parsed(then), _parsed(now)
    if first is None or last is None or last < first:
        return ""
    seconds = (last - first).total_seconds()
    for length, name in _TIME_UNITS:
        if seconds >= length:
            return count(int(seconds // length), name)
    return "less than a minute"


def _metrics(results: Results) -> tuple[Metric, ...]:
    compared = {metric.id: metric for metric in results.comparison.metrics} if results.comparison else {}
    evidence = {row.id: row for row in evidence_rows(results.comparison)} if results.comparison else {}
    far = _reach(list(compared.values()))
    found = []
    for row in view.metric_rows(results):
        other, proof = compared.get(row.id), evidence.get(row.id)
        if other is None:
            found.append(Metric(row.id, row.n, row.mean, row.pass_rate))
            continue
        change, within, interval = view.signed(other.difference), "", None
        if other.interval is not None:
            low, high = other.interval
            within = f"{low:+.2f} to {high:+.2f}"
            interval = Interval(f"change {change} ({within})", other.difference, low, high, reach=far)
        found.append(
            Metric(
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
                state=_STATES.get(other.verdict, "neutral"),
                reason=other.reason.rstrip("."),
                basis=proof.basis if proof else count(other.n, "case"),
                catches=proof.catches if other.detectable_drop is not None and proof else "",
                hint=proof.hint if proof else "",
            )
        )
    return tuple(found)


def _reach(metrics: Sequence[ComparedMetric]) -> float:
    return reach([side for metric in metrics for side in (metric.difference, *(metric.interval or ()))])
