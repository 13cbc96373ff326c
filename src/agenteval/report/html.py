"""Renders report.html, and pages from a user's template."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenteval.core import escape
from agenteval.core.escape import html
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass
from agenteval.core.text import display_path
from agenteval.report.html_data import (
    CHANGES,
    DATA_LIMIT,
    KIND_NAMES,
    NOTES,
    OUTCOMES,
    ROW,
    STATUSES,
    RunTable,
    chunks,
    earlier_pool,
)
from agenteval.report.report import Report, ReportFile
from agenteval.report.size_limits import UserTemplateError, template_directory
from agenteval.report.view import view
from agenteval.report.view.cases import KINDS, Kinds, fallen_metrics
from agenteval.report.view.causes import proofs_by_case
from agenteval.report.view.comparison import base_name, moment, short_commit
from agenteval.report.view.parts import Histogram, Part, score_histogram, time_histogram
from agenteval.report.view.run_page import make_run_page
from agenteval.report.view.trend import RunPoint, trend, trend_json, trend_part
from agenteval.report.view.view import GateView
from agenteval.results.model import Results
from agenteval.results.store import Archive


@dataclass(frozen=True)
class PageFiles:
    """The files of a page below ``templates/html``.

    Attributes:
        template: a template that extends ``page.html.j2``.
        scripts: parts of the one script of the page, in order; empty for a page without a script.
    """

    template: str
    styles: tuple[str, ...] = ("page.css",)
    scripts: tuple[str, ...] = ()


def generate(files: PageFiles, **values: Any) -> Iterator[str]:
    """Render a page piece by piece.

    Args:
        files: its template, style and script.
    """
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.svg import HTML
    from agenteval.report.templating import built_in_template

    style, script = "".join(map(_text, files.styles)), _script(files.scripts)
    yield from built_in_template(HTML, files.template).generate(
        style=style, script=script, policy=_policy(style, script), **values
    )


def _script(names: tuple[str, ...]) -> str:
    """Return the parts as one script; the block keeps their names out of the global scope."""
    return '"use strict";\n{\n' + "\n".join(_text(f"script/{name}") for name in names) + "}\n" if names else ""


@functools.cache
def _text(name: str) -> str:
    return (template_directory() / "html" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a content security policy: nothing is loaded, and only the built-in style and script are allowed."""
    scripts = _digest(script) if script else "'none'"
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {scripts}; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Replaces the placeholders of a user's HTML template for the analysis of a suite, as FluxLoop defines them.
#
# ``[[TITLE]]``, ``[[DATE]]``, ``[[SUBTITLE]]`` and ``[[LOGO_DATA_URI]]`` are HTML text; ``[[SUMMARY_JSON]]``,
# ``[[PER_TRACE_JSON]]``, ``[[CRITERIA_JSON]]`` and ``[[ANALYSIS_JSON]]`` are JSON that is safe inside a script
# element.


_PLACEHOLDER = re.compile(r"\[\[([A-Z_]+)\]\]")
# Characters that can end a script element or open a comment in it, and line ends of older JavaScript.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 10_000_000  # bytes of a template
_LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="11" fill="#2563eb"/>'
    '<path d="M7 12.5l3.5 3.5L17 9" fill="none" stroke="#fff" stroke-width="2.5"/></svg>'
)
LOGO_DATA_URI = f"data:image/svg+xml,{quote(_LOGO)}"


def read_user_template(path: Path) -> str:
    """Read a user's HTML template.

    Raises:
        UserTemplateError: it cannot be read, or is not UTF-8.
    """
    try:
        return read_regular(path, limit=_LARGEST).decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "cannot be read: it is not UTF-8"
    raise UserTemplateError(Path(display_path(path)), reason)


def fill(
    template: str, texts: Mapping[str, str], summary: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]
) -> str:
    """Return the template with every placeholder replaced once; placeholders inside values are not replaced.

    Args:
        template: HTML. Unknown placeholders stay as they are.
        texts: ``TITLE``, ``DATE`` and ``SUBTITLE``.
    """
    data = {
        "SUMMARY_JSON": summary,
        "PER_TRACE_JSON": traces,
        "CRITERIA_JSON": summary.get("success_criteria_results") or {},
        "ANALYSIS_JSON": summary.get("analysis") or {},
    }
    values = {name: html(text) for name, text in texts.items()} | {"LOGO_DATA_URI": LOGO_DATA_URI}
    # Only the placeholders in the template are computed, because all traces of a large run take long.
    for name in data.keys() & set(_PLACEHOLDER.findall(template)):
        values[name] = script_json(data[name])
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def script_json(value: Any) -> str:
    """Return JSON for a script element, without markup and without characters that UTF-8 cannot encode."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_UNSAFE)
    return _SURROGATE.sub("\ufffd", text)


# Renders ``report.html``: the run as one file that loads nothing.
#
# The template gets ``page`` (:class:`~agenteval.report.view.run_page.RunPage`), ``chunks`` (the cases, see
# :mod:`~agenteval.report.html_data`), ``survey`` (complete after the last chunk), and functions for parts that need
# the survey.


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
        archive: access to the run's full cases.
        points: this run and earlier ones, for the trend lines.
        limit: maximum number of characters of the cases; longer texts are cut.
    """
    comparison = results.comparison
    survey = RunTable(Kinds.of(results), proofs_by_case(comparison), fallen_metrics(comparison))
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


def _distributions(survey: RunTable, base: str) -> Part:
    charts = tuple(itertools.islice(_histograms(survey), _MOST_HISTOGRAMS))
    notes = (f"The line is {base}: the means of the cases that both runs scored.",) if survey.pairs else ()
    return Part("distributions", "Distributions", paragraphs=notes if charts else (), charts=charts)


def _histograms(survey: RunTable) -> Iterator[Histogram]:
    for name, scores in survey.scores.items():
        before, now = survey.pairs.get(name, ((), scores))
        if scores:
            title = escape.one_line(name, _LONGEST_LABEL)
            yield score_histogram(title, now, _usual_threshold(survey, name), before)


def _times(survey: RunTable) -> Part:
    facts = [("Tool calls", f"{survey.calls:,} in {view.count(survey.answers, 'answer')}")] if survey.calls else []
    if survey.retries:
        facts.append(("Retries", f"{survey.retries:,}"))
    charts = (time_histogram("Time for a case", sorted(survey.times)),) if survey.times else ()
    return Part("times", "Time and calls", facts=tuple(facts), charts=charts)


def _usual_threshold(survey: RunTable, name: str) -> float | None:
    most = survey.thresholds[name].most_common(1)
    return most[0][0] if most else None


def _index(results: Results, survey: RunTable) -> str:
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
