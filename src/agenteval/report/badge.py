"""``badge.json``: the run as an endpoint badge of shields.io (https://shields.io/badges/endpoint-badge)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agenteval.report.report import Report, ReportFile
from agenteval.report.view.view import GateView, percent
from agenteval.results.model import Results


def report_files(report: Report, results: Results) -> Iterator[ReportFile]:
    """Yield ``badge.json``."""
    yield ReportFile("badge.json", badge_json(results, report.gate))


def badge_json(results: Results, gate: GateView) -> str:
    """Return the text of badge.json: the pass rate, in the colour of the verdict."""
    message, colour = _message(results, gate)
    badge = {"schemaVersion": 1, "label": "agenteval", "message": message, "color": colour}
    return f"{json.dumps(badge, indent=1)}\n"


def _message(results: Results, gate: GateView) -> tuple[str, str]:
    rate = results.summary.pass_rate
    if not results.run.complete:
        return "interrupted", "lightgrey"
    if results.run.shard is not None:
        return "a part only", "lightgrey"
    if rate is None:
        return "nothing checked", "lightgrey"
    if not gate.passed:
        return f"{percent(rate)} passed", "red"
    return f"{percent(rate)} passed", "brightgreen" if rate == 1 else "green"
