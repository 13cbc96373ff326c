"""Writes the report files and prints the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from agenteval.report.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.history import EarlierRun
from agenteval.results.model import Results
from agenteval.results.store import RESULTS_FILE, results_json, write_atomic


def write_reports(
    results: Results, view: GateView, directory: Path, archive: Archive, earlier: Sequence[EarlierRun] = ()
) -> None:
    """Write ``results.json``, then what is rendered from it, so that a rendering error loses no result.

    Args:
        results: the run.
        view: what the gate says.
        directory: where to.
        archive: where the run's cases are in full.
        earlier: runs of the history, for the trend.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    write_atomic(directory / RESULTS_FILE, results_json(results, archive))
    render_reports(results, view, directory, archive, earlier)


def render_reports(
    results: Results, view: GateView, directory: Path, archive: Archive, earlier: Sequence[EarlierRun] = ()
) -> None:
    """Write ``junit.xml``, ``summary.md``, ``comment.md``, ``badge.json``, ``trend.json`` and ``report.html``.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    from agenteval.report import badge, html, junit, markdown, trend

    write_atomic(directory / "junit.xml", junit.render(results, archive))
    write_atomic(directory / "summary.md", markdown.render_summary(results, view))
    write_atomic(directory / "comment.md", markdown.render_comment(results, view))
    points = trend.trend(results, earlier)
    write_atomic(directory / badge.BADGE_FILE, badge.badge_json(results, view))
    write_atomic(directory / trend.TREND_FILE, trend.trend_json(points))
    write_atomic(directory / html.REPORT_FILE, html.render(results, view, archive, points))


def print_table(results: Results, view: GateView, stream: TextIO) -> None:
    """Print the final table; colour only on a terminal, and never with ``NO_COLOR`` set."""
    from agenteval.report.terminal import print_results

    print_results(results, view, stream, colour=stream.isatty() and not os.environ.get("NO_COLOR"))
