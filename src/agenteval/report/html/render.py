"""Renders ``report.html``: the run as one file that loads nothing.

The template gets ``page`` (:class:`~agenteval.report.view.run_page.RunPage`), ``chunks`` (the cases, see
:mod:`~agenteval.report.html.data`), ``survey`` (complete after the last chunk), and functions for parts that need the
survey.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

from agenteval.core.text import escape
from agenteval.report.html.data import chunks, earlier_pool
from agenteval.report.html.data_limit import DATA_LIMIT
from agenteval.report.html.page import PageFiles, generate
from agenteval.report.html.survey import CHANGES, KIND_NAMES, NOTES, OUTCOMES, ROW, STATUSES, Survey
from agenteval.report.report import Report, ReportFile
from agenteval.report.view import view
from agenteval.report.view.case_kinds import KINDS, Kinds, fallen_metrics
from agenteval.report.view.causes import proofs_by_case
from agenteval.report.view.charts import Histogram, score_histogram, time_histogram
from agenteval.report.view.moments import moment, short_commit
from agenteval.report.view.parts import Part
from agenteval.report.view.run_cost import base_name
from agenteval.report.view.run_page import make_run_page
from agenteval.report.view.trend import RunPoint, trend, trend_json
from agenteval.report.view.trend_part import trend_part
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.model import Results

_FILES = PageFiles(
    "run.html.j2",
    styles=("page.css", "run.css"),
    scripts=(
        "elements.js", "rows.js", "selection.js", "difference.js", "texts.js", "turns.js", "case.js", "list.js",
        "links.js", "start.js",
    ),
)  # fmt: skip
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
    comparison = results.comparison
    survey = Survey(Kinds.of(results), proofs_by_case(comparison), fallen_metrics(comparison))
    metrics = results.summary.metrics
    yield from generate(
        _FILES,
        page=make_run_page(results, gate, archive),
        # The cases precede the parts with their figures, because each case is read only once.
        chunks=chunks(results, archive, survey, limit),
        survey=survey,
        unscored=lambda: [name for name in survey.broken if name not in metrics or not metrics[name].n],
        distributions=lambda: _distributions(survey, base_name(results.comparison)),
        times=lambda: _times(survey),
        index=lambda: _index(results, survey),
        trends=trend_part(points),
    )


def _distributions(survey: Survey, base: str) -> Part:
    charts = tuple(itertools.islice(_histograms(survey), _MOST_HISTOGRAMS))
    notes = (f"The line is {base}: the means of the cases that both runs scored.",) if survey.pairs else ()
    return Part("distributions", "Distributions", paragraphs=notes if charts else (), charts=charts)


def _histograms(survey: Survey) -> Iterator[Histogram]:
    for name, scores in survey.scores.items():
        before, now = survey.pairs.get(name, ((), scores))
        if scores:
            title = escape.one_line(name, _LONGEST_LABEL)
            yield score_histogram(title, now, _usual_threshold(survey, name), before)


def _times(survey: Survey) -> Part:
    facts = [("Tool calls", f"{survey.calls:,} in {view.count(survey.answers, 'answer')}")] if survey.calls else []
    if survey.retries:
        facts.append(("Retries", f"{survey.retries:,}"))
    charts = (time_histogram("Time for a case", sorted(survey.times)),) if survey.times else ()
    return Part("times", "Time and calls", facts=tuple(facts), charts=charts)


def _usual_threshold(survey: Survey, name: str) -> float | None:
    most = survey.thresholds[name].most_common(1)
    return most[0][0] if most else None


def _index(results: Results, survey: Survey) -> str:
    """Return the lists whose entries the rows of the data refer to by number, and the names of both sides."""
    baseline = results.comparison.baseline if results.comparison else None
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
        "kinds": [[name, KINDS[name].words, KINDS[name].attention] for name in KIND_NAMES],
        "causes": survey.causes,
        "base": base_name(results.comparison),
        "base_commit": short_commit(baseline.commit)[:7] if baseline else "",
    }
    return escape.json_in_html(json.dumps(index, ensure_ascii=False))
