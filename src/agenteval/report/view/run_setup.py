"""How a run was made, for the HTML report: the run itself, its baseline, its suites, and what it was judged by."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.comparison_rows import verdict_note
from agenteval.report.view.integrity import integrity_rows
from agenteval.report.view.moments import age, moment, short_commit
from agenteval.report.view.parts import Part, table
from agenteval.report.view.view import count
from agenteval.results.archive import Archive
from agenteval.results.comparison import Comparison
from agenteval.results.coverage import Coverage
from agenteval.results.model import Results

_MOST_ROWS = 200
_LONGEST = 80


def run_setup(results: Results, archive: Archive) -> tuple[Part, ...]:
    """Return the parts about the making of the run; empty ones are left out.

    Args:
        results: the run.
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
        ("Beside the change", short_commit(comparison.control)),
    )
    note = verdict_note(comparison)
    return Part(
        "baseline",
        "Baseline",
        paragraphs=(note,) if comparison.verdict != "regressed" else (),
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
