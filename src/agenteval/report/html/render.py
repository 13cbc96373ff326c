"""``report.html``: the run as one file that loads nothing.

The template gets ``page`` (:class:`~agenteval.report.html.page.Page`), ``chunks`` (the cases, see
:mod:`~agenteval.report.html.data`), ``survey`` (known when the chunks have gone by), ``trend`` and the page's own
style and script. Every text that an expression yields goes through :func:`agenteval.core.text.escape.html`, whatever
filter it had.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agenteval.core.text import escape
from agenteval.report.html import svg as charts
from agenteval.report.html.charts import interval_svg, line_svg
from agenteval.report.html.data import CHANGES, NOTES, OUTCOMES, ROW, STATUSES, Survey, chunks, earlier_pool
from agenteval.report.html.data_limit import DATA_LIMIT
from agenteval.report.html.page import MOST_NOTICES, make_page, moment, short_commit
from agenteval.report.html.svg import Histogram, score_histogram, time_histogram
from agenteval.report.html.trend import make_trend
from agenteval.report.markdown.render import template_directory
from agenteval.report.view import view
from agenteval.report.view.trend import RunPoint
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.model import Results

if TYPE_CHECKING:
    from jinja2 import Template

REPORT_FILE = "report.html"
_MOST_HISTOGRAMS = 24
_LONGEST_LABEL = 60


def render(
    results: Results, gate: GateView, archive: Archive, points: Sequence[RunPoint], *, limit: int = DATA_LIMIT
) -> Iterator[str]:
    """The report, piece by piece.

    Args:
        results: the run.
        gate: what the gate says.
        archive: where the run's cases are in full.
        points: this run and those before it, for the trend lines.
        limit: characters that the cases may take; beyond it long texts are cut.
    """
    survey = Survey()
    style, script = _own("report.css"), _own("report.js")
    yield from _template().generate(
        page=make_page(results, gate),
        # The cases come before everything that counts them: one look at each is enough.
        chunks=chunks(results, archive, survey, limit),
        survey=survey,
        unscored=lambda: [name for name in survey.broken if name not in results.summary.metrics],
        histograms=lambda: _histograms(survey),
        index=lambda: _index(results, survey),
        trend=make_trend(points),
        most_notices=MOST_NOTICES,
        style=style,
        script=script,
        policy=_policy(style, script),
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
    """What the rows of the data refer to by number."""
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


@functools.cache
def _own(name: str) -> str:
    return (template_directory() / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A content security policy: nothing is loaded, and no style and no script counts but ours."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.cache
def _template() -> Template:
    # Imported here: a program start that renders nothing does not pay for it.
    from jinja2 import FileSystemLoader
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from markupsafe import Markup

    from agenteval.report.templating import OPTIONS, CompiledTemplates

    def trusted(text: str) -> Markup:
        return Markup(text)  # noqa: S704 - our own markup, or text that went through core/text/escape.py

    def final(value: Any) -> Any:
        return trusted(escape.html(value)) if type(value) is str else value

    def drawn(draw: Callable[[Any], str]) -> Callable[[Any], Markup]:
        return lambda chart: trusted(draw(chart))

    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(template_directory()),
        autoescape=True,
        finalize=final,
        bytecode_cache=CompiledTemplates(template_directory()),
        **OPTIONS,
    )
    environment.filters.update(FILTERS)
    environment.filters.update(
        trusted=trusted, chart=drawn(charts.svg), line_chart=drawn(line_svg), interval=drawn(interval_svg)
    )
    return environment.get_template("report.html.j2")


#: Ways to write a value; besides these the template has ``trusted`` (our own style, script, policy and data, which
#: was escaped as JSON), ``chart``, ``line_chart`` and ``interval``.
FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "short": escape.one_line,
        "integer": lambda value: f"{value:,}",
        "number": view.number,
        "percent": view.percent,
        "count": view.count,
        "met": lambda met: {True: "met", False: "not met", None: "no data"}[met],
        "state": lambda value: {True: "good", False: "bad", "passed": "good", "failed": "bad", "error": "bad"}.get(
            value, "neutral"
        ),
    }
)
