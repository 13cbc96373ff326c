"""``badge.json``: the run as an endpoint badge of shields.io (https://shields.io/badges/endpoint-badge)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agenteval.report import words
from agenteval.report.facts import Report
from agenteval.report.limits import ReportFile
from agenteval.results.history import why_partial

#: Colours of a passed run, by the least share of all cases that were checked and passed.
_COLOURS = ((1.0, "brightgreen"), (0.8, "green"), (0.5, "yellow"), (0.0, "orange"))


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield ``badge.json``: the pass rate, or how many of all cases passed, in the colour of the verdict."""
    message, colour = _result(report)
    text = ", ".join([message, *_of_how_many(report)])
    badge = {"schemaVersion": 1, "label": "agenteval", "message": text, "color": colour}
    yield ReportFile("badge.json", f"{json.dumps(badge, indent=1)}\n")


def _result(report: Report) -> tuple[str, str]:
    counts, shard = report.counts, report.run.shard
    if not report.run.complete:
        return "interrupted", "lightgrey"
    if shard is not None:
        return f"shard {shard.index} of {shard.count}", "lightgrey"
    if counts.cases == counts.skipped:
        return "nothing checked", "lightgrey"
    if report.verdict == "unproven":
        return "unproven", "lightgrey"
    # Those that a metric or the comparison of means decided about.
    decided, cases = counts.passed - report.about.undecided, counts.cases
    all_are = decided + counts.failed == cases
    passed = f"{words.percent(decided / cases)} passed" if all_are else f"{decided:,} of {cases:,} passed"
    if why_partial(report.run):
        return passed, "lightgrey"
    if not report.passed:
        return passed, "red"
    return passed, next(colour for least, colour in _COLOURS if decided / cases >= least)


def _of_how_many(report: Report) -> Iterator[str]:
    """Yield the numbers of cases that the run covered and that its judges scored, if these are not all."""
    covered, judging = report.run.coverage, report.summary.judging
    if covered is not None and covered.counts_note:
        yield covered.counts_note
    if judging is not None:
        yield f"judged {judging.judged:,} of {judging.cases:,} cases"
