"""The content of the HTML report about a whole run, in plain values; the template arranges it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.causes import causes_of
from agenteval.report.view.certainty import requested_proof
from agenteval.report.view.comparison_rows import resource_rows
from agenteval.report.view.goals import Goal, goals
from agenteval.report.view.heading import heading_of
from agenteval.report.view.moments import age, moment, short_commit
from agenteval.report.view.moved_cases import moved_cases
from agenteval.report.view.parts import Part, State, listed, table
from agenteval.report.view.run_cost import base_name, run_cost
from agenteval.report.view.run_metrics import Metric, run_metrics
from agenteval.report.view.run_setup import run_setup
from agenteval.report.view.view import GateView
from agenteval.results.analysis.formatting import criterion_texts
from agenteval.results.archive import Archive
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.verdict import Verdict

_MOST_ROWS = 200
_LONGEST_LABEL = 80
#: Words for a condition that is met, not met, or without data, and their states.
MET: Mapping[bool | None, str] = {True: "met", False: "not met", None: "not checked"}
MET_STATES: Mapping[bool | None, State] = {True: "good", False: "bad", None: "neutral"}
#: The state of each verdict.
VERDICT_STATES: Mapping[Verdict, State] = {"passed": "good", "failed": "bad", "unproven": "neutral", "error": "bad"}


@dataclass(frozen=True)
class RunPage:
    """The head and the sections that do not need the cases (see ``Survey`` in ``report/html/data.py``).

    Attributes:
        base: the name of the other side.
        facts: labels and values for the head.
        notices: reasons and warnings.
        moved: the cases behind a proven change of a mean.
        criteria: conditions on whole suites.
        goals: what the suites are evaluated for.
        cost: tokens, cost and time, and their changes.
        setup: how the run was made.
    """

    title: str
    verdict: str
    state: State
    headline: str
    base: str
    facts: tuple[tuple[str, str], ...]
    notices: tuple[Part, ...]
    metrics: tuple[Metric, ...]
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
    """Return the content of the page without the cases.

    Args:
        results: the run.
        gate: the gate's decision.
        archive: access to all cases of the run.
    """
    heading = heading_of(results, gate, causes_of(results))
    notices = (
        listed("reasons", "Reasons", gate.reasons, _MOST_ROWS),
        listed("requested", "Proof on request", requested_proof(results), _MOST_ROWS),
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
        moved=_moved(results.comparison),
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
    rows = ((MET[item.met], item.name, suite, *criterion_texts(item)) for suite, item in found)
    columns = ("Result", "Criterion", "Suite", "#Value", "#Needed")
    shown = table("", columns, rows, _MOST_ROWS, (MET_STATES[item.met] for _, item in found))
    return Part("criteria", "Criteria", tables=(shown,) if found else ())
