"""Writes the report files and prints the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from agenteval.report.presentation import Presentation
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.history import EarlierRun
from agenteval.results.model import Results
from agenteval.results.store import RESULTS_FILE, results_json, write_atomic

_PLAIN = Presentation()


def write_reports(
    results: Results,
    view: GateView,
    directory: Path,
    archive: Archive,
    earlier: Sequence[EarlierRun] = (),
    *,
    presentation: Presentation = _PLAIN,
) -> GateView:
    """Write ``results.json``, then what is rendered from it, so that a rendering error loses no result.

    Args:
        results: the run.
        view: what the gate says.
        directory: where to.
        archive: where the run's cases are in full.
        earlier: runs of the history, for the trend.
        presentation: the user's own templates, and where links lead.

    Returns:
        What the gate says, with a warning for each template that could not be used.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    write_atomic(directory / RESULTS_FILE, results_json(results, archive))
    return render_reports(results, view, directory, archive, earlier, presentation=presentation)


def render_reports(
    results: Results,
    view: GateView,
    directory: Path,
    archive: Archive,
    earlier: Sequence[EarlierRun] = (),
    *,
    presentation: Presentation = _PLAIN,
) -> GateView:
    """Write ``junit.xml``, ``summary.md``, ``comment.md``, ``badge.json``, ``trend.json`` and ``report.html``.

    Args, what is returned and errors are those of :func:`write_reports`.
    """
    from agenteval.report import badge, junit
    from agenteval.report.html import render as html
    from agenteval.report.markdown import render as markdown
    from agenteval.report.view import trend

    warnings: list[str] = []
    write_atomic(directory / "junit.xml", junit.render(results, archive))
    summary = markdown.render_summary(results, view, presentation=presentation, warn=warnings.append)
    write_atomic(directory / "summary.md", summary)
    comment = markdown.render_comment(results, view, presentation=presentation, warn=warnings.append)
    write_atomic(directory / "comment.md", comment)
    view = replace(view, warnings=(*warnings, *view.warnings))
    points = trend.trend(results, earlier)
    write_atomic(directory / badge.BADGE_FILE, badge.badge_json(results, view))
    write_atomic(directory / trend.TREND_FILE, trend.trend_json(points))
    write_atomic(directory / html.REPORT_FILE, html.render(results, view, archive, points))
    return view


def print_table(results: Results, view: GateView, stream: TextIO) -> None:
    """Print the final table; colour only on a terminal, and never with ``NO_COLOR`` set."""
    from agenteval.report.terminal import print_results

    print_results(results, view, stream, colour=stream.isatty() and not os.environ.get("NO_COLOR"))
