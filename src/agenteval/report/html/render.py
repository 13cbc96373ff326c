"""Renders ``report.html``: the run as one file that loads nothing.

The template gets ``page`` (:class:`~agenteval.report.view.run_page.RunPage`), ``chunks`` (the cases, see
:mod:`~agenteval.report.html.data`), ``survey`` (complete after the last chunk), and functions for parts that need the
survey.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agenteval.core.text import escape
from agenteval.report.html.data import CHANGES, NOTES, OUTCOMES, ROW, STATUSES, Survey, chunks, earlier_pool
from agenteval.report.html.data_limit import DATA_LIMIT
from agenteval.report.html.page import generate
from agenteval.report.report import Report, ReportFile
from agenteval.report.view.charts import Histogram, score_histogram, time_histogram
from agenteval.report.view.parts import Part
from agenteval.report.view.run_page import make_run_page, moment, short_commit
from agenteval.report.view.trend import RunPoint, trend, trend_json
from agenteval.report.view.trend_part import trend_part
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.model import Results

_MOST_HISTOGRAMS = 24
_LONGEST_LABEL = 60


def report_files(report: Report, results: Results) -> Iterator[ReportFile]:
    """Yield ``report.html``, and ``trend.json`` with the numbers of its trend lines."""
    points = trend(results, report.earlier)
    yield ReportFile("trend.json", trend_json(points))
    yield ReportFile("report.html", render(results, report.gate, report.archive, points))


def render(
    results: Results, gate: GateView, archive: Archive, points: Sequence[RunPoint], *, limit: int = DATA_LIMIT
) -> Iterator[str]:
    """Render the report piece by piece.

    Args:
        results: the run.
        gate: the gate's decision.
        archive: access to the run's full cases.
        points: this run and earlier ones, for the trend lines.
        limit: maximum number of characters of the cases; longer texts are cut.
    """
    survey, metrics = Survey(), results.summary.metrics
    yield from generate(
        "run.html.j2",
        page=make_run_page(results, gate),
        # The cases precede the parts with their figures, because each case is read only once.
        chunks=chunks(results, archive, survey, limit),
        survey=survey,
        unscored=lambda: [name for name in survey.broken if name not in metrics or not metrics[name].n],
        distributions=lambda: Part("distributions", "Distributions", charts=tuple(_histograms(survey))),
        index=lambda: _index(results, survey),
        trends=trend_part(points),
    )


def _histograms(survey: Survey) -> list[Histogram]:
    found = [
        score_histogram(escape.one_line(name, _LONGEST_LABEL), scores, _usual_threshold(survey, name))
        for name, scores in survey.scores.items()
        if scores
    ][:_MOST_HISTOGRAMS]
    if survey.times:
        found.append(time_histogram("Time for a case", sorted(survey.times)))
    return found


def _usual_threshold(survey: Survey, name: str) -> float | None:
    most = survey.thresholds[name].most_common(1)
    return most[0][0] if most else None


def _index(results: Results, survey: Survey) -> str:
    """Return the lists whose entries the rows of the data refer to by number."""
    index = {
        "row": ROW,
        "statuses": STATUSES,
        "changes": CHANGES,
        "notes": NOTES,
        "outcomes": OUTCOMES,
        "metrics": list(survey.metrics),
        "tags": list(survey.tags),
        "suites": [{"path": suite.path, "name": suite.name} for suite in results.suites],
        "pool": [
            {"commit": short_commit(entry.commit)[:7], "made": moment(entry.created_at)}
            for entry in earlier_pool(results)
        ],
        "compared": results.comparison is not None,
    }
    return escape.json_in_html(json.dumps(index, ensure_ascii=False))
