"""The part of a page about the whole run: metrics, set-up, comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass, replace
from agenteval.report.view import view
from agenteval.report.view.causes import causes_of
from agenteval.report.view.comparison import (
    EvidenceRow,
    Goal,
    age,
    base_name,
    evidence_rows,
    goals,
    moment,
    moved_cases,
    resource_rows,
    run_cost,
    short_commit,
    verdict_note,
)
from agenteval.report.view.heading import heading_of
from agenteval.report.view.notes import certainty, integrity_rows
from agenteval.report.view.parts import Interval, Part, State, listed, reach, table
from agenteval.report.view.view import GateView, MetricRow, count
from agenteval.results.comparison import ComparedMetric, Comparison
from agenteval.results.model import Coverage, Results
from agenteval.results.store import Archive
from agenteval.results.verdict import Verdict, criterion_texts


@dataclass(frozen=True)
class RunMetric:
    """One metric of the run, and its change if there is a baseline.

    Attributes:
        range: its interval in words; ``interval`` is the drawing of both.
        basis: numbers of cases, runs and iterations of the comparison.
        catches: the smallest detectable drop.
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
    word: str = ""
    state: State = "neutral"
    reason: str = ""
    basis: str = ""
    catches: str = ""
    broke: int = 0

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


def run_metrics(results: Results) -> tuple[RunMetric, ...]:
    """Return every metric in the order of the summary."""
    compared = {metric.id: metric for metric in results.comparison.metrics} if results.comparison else {}
    evidence = {row.id: row for row in evidence_rows(results.comparison)} if results.comparison else {}
    far = _reach(list(compared.values()))
    broke = Counter(
        fact.id
        for case in (results.comparison.cases if results.comparison else ())
        if case.change == "broke"
        for fact in view.got_worse(case)
    )
    found = []
    for row in view.metric_rows(results):
        other = compared.get(row.id)
        if other is None:
            found.append(RunMetric(row.id, row.n, row.mean, row.pass_rate))
        else:
            found.append(_compared(row, other, evidence.get(row.id), far, broke[row.id]))
    return tuple(found)


def _compared(row: MetricRow, other: ComparedMetric, proof: EvidenceRow | None, far: float, broke: int) -> RunMetric:
    change, within, interval = view.signed(other.difference), "", None
    if other.low is not None and other.high is not None:
        low, high = other.low, other.high
        within = f"{low:+.2f} to {high:+.2f}"
        interval = Interval(f"change {change} ({within})", other.difference, low, high, reach=far)
    return RunMetric(
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
        word=other.word if other.gating else "only reported",
        state="bad" if broke or other.fell else "good" if other.rose else "neutral",
        reason=_moved(other),
        basis=proof.basis if proof else count(other.n, "case"),
        catches=proof.catches if other.detectable_drop is not None and proof else "",
        broke=broke,
    )


def _moved(metric: ComparedMetric) -> str:
    if metric.fell or metric.rose:
        return "fell" if metric.difference < 0 else "rose"
    return metric.word if metric.gating else ""


def _reach(metrics: Sequence[ComparedMetric]) -> float:
    return reach(
        [side for metric in metrics for side in (metric.difference, *filter(None, (metric.low, metric.high)))]
    )


_MOST_ROWS = 200
_LONGEST = 80


def run_setup(results: Results, archive: Archive) -> tuple[Part, ...]:
    """Return the parts about the making of the run; empty ones are left out.

    Args:
        archive: counts the cases of each suite.
    """
    parts = (
        Part("the-run", "The run", facts=tuple(_known(_run(results)))),
        _baseline(results.comparison, results.run.started_at) if results.comparison else Part("baseline", "Baseline"),
        _suites(results, archive),
        Part("limits", "Selection and limits", facts=tuple(_known(_limits(results.run.coverage)))),
        _rules(results),
        _differences(results),
    )
    return tuple(part for part in parts if not part.empty)


def _run(results: Results) -> Iterator[tuple[str, str]]:
    run = results.run
    yield "Run", one_line(run.id, _LONGEST)
    yield "Commit", f"{short_commit(run.commit)}{' and changes' if run.commit and run.uncommitted else ''}"
    yield "Ref", _branch(run.ref)
    yield "Repository", one_line(run.repository or "", _LONGEST)
    yield "Started", moment(run.started_at)
    yield "Duration", view.duration(run.duration_s)
    yield "Complete", "" if run.complete else "no, it was interrupted"
    yield "Seed", "" if run.seed is None else str(run.seed)
    yield "Shard", f"{run.shard.index} of {run.shard.count}" if run.shard else ""
    yield "Merged from", count(len(run.merged), "part") if run.merged else ""
    yield "Version", one_line(results.tool.version, _LONGEST)
    plugins = (f"{plugin.name} {plugin.version}" for plugin in results.tool.plugins)
    yield "Plugins", ", ".join(one_line(plugin, _LONGEST) for plugin in plugins)


def _baseline(comparison: Comparison, now: str) -> Part:
    baseline = comparison.baseline
    facts = (
        ("Commit", short_commit(baseline.commit)),
        ("Ref", _branch(baseline.ref)),
        ("Run", one_line(baseline.run_id, _LONGEST)),
        ("Made", moment(baseline.created_at)),
        ("Age", age(baseline.created_at, now)),
        (
            "Distance",
            "" if baseline.distance is None else f"{count(baseline.distance, 'commit')} before the base commit",
        ),
        ("Includes", ", ".join(filter(None, map(short_commit, baseline.between)))),
        ("Beside the change", short_commit(comparison.base_sha)),
    )
    note = verdict_note(comparison)
    return Part(
        "baseline",
        "Baseline",
        paragraphs=(note,) if comparison.word != "proven" else (),
        facts=tuple(_known(facts)),
    )


def _suites(results: Results, archive: Archive) -> Part:
    rows = ((suite.name, suite.path, suite.format, f"{archive.counts(suite).total():,}") for suite in results.suites)
    return Part("suites", "Suites", tables=(table("", ("Suite", "File", "Format", "#Cases"), rows, _MOST_ROWS),))


def _limits(coverage: Coverage | None) -> Iterator[tuple[str, str]]:
    if coverage is None:
        return
    yield "Cases", coverage.selection_note
    yield "Finished", coverage.counts_note
    yield "Iterations", "" if coverage.iterations is None else f"{coverage.iterations:,}"
    yield "Model calls", "" if coverage.max_llm_calls is None else f"at most {coverage.max_llm_calls:,}"
    yield "Cost", "" if coverage.max_cost_usd is None else f"at most {view.money(coverage.max_cost_usd)}"
    yield "Time", "" if coverage.time_limit_s is None else f"at most {view.duration(coverage.time_limit_s)}"
    yield "Ended by", coverage.ended_by or ""


def _rules(results: Results) -> Part:
    rules = results.gate.rules if results.gate else None
    if rules is None:
        return Part("rules", "Rules of the gate")
    facts = (
        ("Fails on", ", ".join(rules.fail_on)),
        # Any error counts if errors fail the gate.
        (
            "Cases that may end in an error",
            "none" if "errors" in rules.fail_on else view.percent(rules.max_error_rate),
        ),
        ("Not counted", ", ".join(one_line(case, _LONGEST) for case in rules.quarantine[:_MOST_ROWS])),
    )
    return Part("rules", "Rules of the gate", facts=tuple(_known(facts)))


def _differences(results: Results) -> Part:
    rows = ((row.what, row.before, row.after, row.effect) for row in integrity_rows(results.run))
    shown = table("", ("What", "Base commit", "This change", "What decides"), rows, _MOST_ROWS)
    title = "Suites and rules that differ from the base commit"
    return Part("differences", title, tables=(shown,) if shown.rows else ())


def _known(facts: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    return ((label, value) for label, value in facts if value)


def _branch(ref: str | None) -> str:
    return one_line((ref or "").removeprefix("refs/heads/"), _LONGEST)


_LONGEST_LABEL = 80
#: Words for a condition that is met, not met, or without data, and their states.
MET: Mapping[bool | None, str] = {True: "met", False: "not met", None: "not checked"}
MET_STATES: Mapping[bool | None, State] = {True: "good", False: "bad", None: "neutral"}
#: The state of each verdict.
VERDICT_STATES: Mapping[Verdict, State] = {"passed": "good", "failed": "bad", "unproven": "neutral", "error": "bad"}


@dataclass(frozen=True)
class RunPage:
    """The head and the sections that do not need the cases (see ``Survey`` in ``report/html_data.py``).

    Attributes:
        moved: the cases behind a proven change of a mean.
        criteria: conditions on whole suites.
        cost: tokens, cost and time, and their changes.
    """

    title: str
    verdict: str
    state: State
    headline: str
    base: str
    facts: tuple[tuple[str, str], ...]
    notices: tuple[Part, ...]
    metrics: tuple[RunMetric, ...]
    moved: Part
    criteria: Part
    goals: tuple[Goal, ...]
    cost: Part
    setup: tuple[Part, ...]
    version: str

    @property
    def compared(self) -> bool:
        """Whether any metric has a baseline."""
        return any(metric.baseline is not None for metric in self.metrics)


def make_run_page(results: Results, gate: GateView, archive: Archive) -> RunPage:
    """Return the content of the page without the cases."""
    heading = heading_of(results, gate, causes_of(results))
    notices = (
        listed("reasons", "Reasons", gate.reasons, _MOST_ROWS),
        listed("certainty", "How sure?", certainty(results), _MOST_ROWS),
        listed("warnings", "Warnings", gate.warnings, _MOST_ROWS, warns=True),
    )
    return RunPage(
        title=heading.name,
        verdict=gate.verdict,
        state=VERDICT_STATES[gate.verdict],
        headline=heading.text,
        base=base_name(results.comparison),
        facts=tuple((label, value) for label, value in _facts(results) if value),
        notices=tuple(part for part in notices if not part.empty),
        metrics=run_metrics(results),
        moved=_run_page_moved(results.comparison),
        criteria=_criteria(results),
        goals=goals(results),
        cost=run_cost(results),
        setup=run_setup(results, archive),
        version=results.tool.version,
    )


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the few facts of the head: how many passed, what it cost, what it is compared with, and of what it is."""
    summary, run = results.summary, results.run
    changes = _resource_changes(results.comparison)
    counts = view.counts(results)
    evaluated = counts.cases - counts.skipped
    rate = counts.passed / evaluated if evaluated else None
    left_out = [f"{counts.skipped:,} skipped"] if counts.skipped else []
    left_out += [f"{summary.cases - counts.cases:,} in quarantine"] if summary.cases != counts.cases else []
    without = f", without {' and '.join(left_out)}" if left_out else ""
    yield "Passed", f"{counts.passed:,} of {evaluated:,} ({view.percent(rate)}){without}"
    yield "Could not be run", f"{summary.errors:,}" if summary.errors else ""
    yield "Skipped", f"{summary.skipped:,}" if summary.skipped else ""
    yield "Mean score", view.number(summary.score)
    cost = view.money(summary.usage.cost_usd) if summary.usage.cost_usd else ""
    yield "Cost", " ".join(filter(None, (cost, changes.get("cost per answer", ""))))
    yield "Time", " ".join(filter(None, (view.duration(run.duration_s), changes.get("latency", ""))))
    if results.comparison:
        yield "Compared with", _compared_with(results.comparison, run.started_at)
    commit = short_commit(run.commit)[:7]
    yield (
        "This run",
        ", ".join(
            filter(
                None,
                (
                    one_line((run.ref or "").removeprefix("refs/heads/"), _LONGEST_LABEL),
                    commit,
                    moment(run.started_at),
                ),
            )
        ),
    )


def _resource_changes(comparison: Comparison | None) -> Mapping[str, str]:
    rows = resource_rows(comparison) if comparison else ()
    return {row.name: f"({row.change} an answer)" for row in rows if row.change}


def _compared_with(comparison: Comparison, now: str) -> str:
    baseline = comparison.baseline
    name, commit = base_name(comparison), short_commit(baseline.commit)[:7]
    old = age(baseline.created_at, now)
    return ", ".join(filter(None, (f"{name} {commit}".strip(), f"{old} old" if old else "")))


def _run_page_moved(comparison: Comparison | None) -> Part:
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
    rows = ((MET[item.met], item.name, suite, *criterion_texts(item)) for suite, item in found)
    columns = ("Result", "Criterion", "Suite", "#Value", "#Needed")
    shown = table("", columns, rows, _MOST_ROWS, (MET_STATES[item.met] for _, item in found))
    return Part("criteria", "Criteria", tables=(shown,) if found else ())
