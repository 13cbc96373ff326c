"""``badge.json``: the run as an endpoint badge of shields.io (https://shields.io/badges/endpoint-badge)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agenteval.report.report import Report, ReportFile
from agenteval.report.view import view
from agenteval.report.view.view import GateView
from agenteval.results.history import why_partial
from agenteval.results.model import Results

#: Colours of a passed run, by the least share of all cases that were checked and passed.
_COLOURS = ((1.0, "brightgreen"), (0.8, "green"), (0.5, "yellow"), (0.0, "orange"))


def report_files(report: Report, results: Results) -> Iterator[ReportFile]:
    """Yield ``badge.json``."""
    yield ReportFile("badge.json", badge_json(results, report.gate))


def badge_json(results: Results, gate: GateView) -> str:
    """Return the text of badge.json: the pass rate, or how many of all cases passed, in the colour of the verdict."""
    message, colour = _message(results, gate)
    badge = {"schemaVersion": 1, "label": "agenteval", "message": message, "color": colour}
    return f"{json.dumps(badge, indent=1)}\n"


def _message(results: Results, gate: GateView) -> tuple[str, str]:
    message, colour = _result(results, gate)
    return ", ".join([message, *_of_how_many(results)]), colour


def _result(results: Results, gate: GateView) -> tuple[str, str]:
    counts, shard = view.counts(results), results.run.shard
    if not results.run.complete:
        return "interrupted", "lightgrey"
    if shard is not None:
        return f"shard {shard.index} of {shard.count}", "lightgrey"
    if counts.cases == counts.skipped:
        return "nothing checked", "lightgrey"
    if gate.verdict == "unproven":
        return "unproven", "lightgrey"
    # Those that a metric or the comparison of means decided about.
    decided, cases = counts.passed - _undecided(results), counts.cases
    all_are = decided + counts.failed == cases
    passed = f"{view.percent(decided / cases)} passed" if all_are else f"{decided:,} of {cases:,} passed"
    if why_partial(results.run):
        return passed, "lightgrey"
    if not gate.passed:
        return passed, "red"
    return passed, next(colour for least, colour in _COLOURS if decided / cases >= least)


def _of_how_many(results: Results) -> Iterator[str]:
    """Yield the numbers of cases that the run covered and that its judges scored, if these are not all."""
    covered, judging = results.run.coverage, results.summary.judging
    if covered is not None and covered.counts_note:
        yield covered.counts_note
    if judging is not None:
        yield f"judged {judging.judged:,} of {judging.cases:,} cases"


def _undecided(results: Results) -> int:
    """Return the number of cases that passed although neither a metric nor the comparison of means decided."""
    is_compared = results.comparison is not None and bool(results.comparison.metrics)
    return 0 if is_compared else sum(suite.undecided for suite in results.suites)
