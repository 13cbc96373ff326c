"""Renders report.html, and pages from a user's template."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from agenteval.core import escape
from agenteval.core.escape import html
from agenteval.core.files import read_regular
from agenteval.core.text import display_path
from agenteval.report import words
from agenteval.report.cases import KINDS, Kinds, fallen_metrics
from agenteval.report.causes import proofs_by_case
from agenteval.report.charts import interval_svg, svg, trend_json, trend_part
from agenteval.report.facts import Report
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
)
from agenteval.report.parts import Part, ReportFile, State, UserTemplateError, listed, table, template_directory
from agenteval.report.setup import commit_of
from agenteval.report.steps import baseline_option
from agenteval.report.templates import Language, built_in_template
from agenteval.report.words import moment, short_commit
from agenteval.results.case import CaseResult
from agenteval.results.model import Results
from agenteval.results.verdict import Verdict, criterion_texts, seconds


def generate(
    template: str, scripts: Sequence[str] = (), styles: Sequence[str] = ("page.css",), **values: Any
) -> Iterator[str]:
    """Render a page piece by piece from files below ``templates/html``.

    Args:
        template: extends ``page.html.j2``.
        scripts: parts of the one script of the page, in order; empty for a page without a script.
    """
    style, script = "".join(map(_text, styles)), "\n".join(_text(f"script/{name}") for name in scripts)
    # The block keeps the names of the script out of the global scope.
    script = f'"use strict";\n{{\n{script}}}\n' if script else ""
    yield from built_in_template(HTML, template).generate(
        style=style, script=script, policy=_policy(style, script), **values
    )


@functools.cache
def _text(name: str) -> str:
    return (template_directory() / "html" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
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
    """Read a user's HTML template, or raise a UserTemplateError."""
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
    """Return the HTML with every known placeholder replaced once; placeholders inside values are not replaced."""
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
# The template gets ``report`` (:class:`~agenteval.report.facts.Report`), ``page`` (what only the page shows of it),
# ``chunks`` (the cases, see :mod:`~agenteval.report.html_data`), ``survey`` (complete after the last chunk), and
# functions for parts that need the survey.


_SCRIPTS = (
    "elements.js", "rows.js", "selection.js", "difference.js", "texts.js", "turns.js", "case.js", "list.js",
    "links.js", "start.js",
)  # fmt: skip
_MOST_ROWS = 200
_LONGEST_BRANCH = 80
#: Words for a condition that is met, not met, or without data, and their states.
MET: Mapping[bool | None, str] = {True: "met", False: "not met", None: "not checked"}
MET_STATES: Mapping[bool | None, State] = {True: "good", False: "bad", None: "neutral"}
_VERDICT_STATES: Mapping[Verdict, State] = {"passed": "good", "failed": "bad", "unproven": "neutral", "error": "bad"}


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield ``report.html``, and ``trend.json`` with the numbers of its trend lines."""
    yield ReportFile("trend.json", trend_json(report.trend))
    yield ReportFile("report.html", render(report))


def render(report: Report, *, limit: int = DATA_LIMIT) -> Iterator[str]:
    """Render the report piece by piece; texts of cases are cut to ``limit`` characters together."""
    results = report.results
    comparison = results.comparison
    survey = RunTable(Kinds.of(results), proofs_by_case(comparison), fallen_metrics(comparison))
    metrics = report.summary.metrics
    yield from generate(
        "run.html.j2",
        _SCRIPTS,
        ("page.css", "run.css"),
        page={
            "title": report.heading.name,
            "verdict": report.verdict,
            "state": _VERDICT_STATES[report.verdict],
            "facts": tuple((label, value) for label, value in head_facts(report) if value),
        },
        report=report,
        notices=_notices(report),
        moved=_moved(report),
        criteria=_criteria(report),
        # The cases precede the parts with their figures, because each case is read only once.
        chunks=chunks(report.source, survey, limit),
        survey=survey,
        unscored=lambda: [name for name in survey.broken if name not in metrics or not metrics[name].n],
        spent=lambda: _spent(report, survey),
        index=lambda: _index(report, survey),
        trends=trend_part(report.trend, [metric.id for metric in report.metrics if metric.state == "bad"]),
    )


def _notices(report: Report) -> tuple[Part, ...]:
    parts = (
        listed("reasons", "Reasons", report.gate.reasons, _MOST_ROWS),
        listed("certainty", "How sure?", report.certainty, _MOST_ROWS),
        listed("warnings", "Warnings", report.warnings, _MOST_ROWS, warns=True),
    )
    return tuple(part for part in parts if not part.empty)


def head_facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the few facts of the head: how many passed, what it cost, what it is compared with, and of what it is."""
    summary, run, counts = report.summary, report.run, report.counts
    resources = report.base.resources if report.base else ()
    dearer = next((item.change for item in resources if item.name == "cost_usd"), None)
    evaluated = counts.cases - counts.skipped
    rate = counts.passed / evaluated if evaluated else None
    left_out = [f"{counts.skipped:,} skipped"] if counts.skipped else []
    left_out += [f"{summary.cases - counts.cases:,} in quarantine"] if summary.cases != counts.cases else []
    without = f", without {' and '.join(left_out)}" if left_out else ""
    yield "Passed", f"{counts.passed:,} of {evaluated:,} ({words.percent(rate)}){without}"
    yield "Could not be run", f"{summary.errors:,}" if summary.errors else ""
    yield "Skipped", f"{summary.skipped:,}" if summary.skipped else ""
    yield "Mean score", words.number(summary.score)
    cost = words.money(summary.usage.cost_usd) if summary.usage.cost_usd else ""
    yield "Cost", cost if dearer is None else f"{cost} ({words.change(dearer)} an answer)"
    yield "Time", words.duration(run.duration_s)
    if base := report.base:
        yield "Compared with", ", ".join(filter(None, (f"{base.name} {_commit(base.commit)}".strip(), base.age)))
    branch = escape.one_line((run.ref or "").removeprefix("refs/heads/"), _LONGEST_BRANCH)
    yield "This run", ", ".join(filter(None, (branch, commit_of(run, 7), moment(run.started_at))))


def _commit(sha: str | None) -> str:
    return short_commit(sha)[:7]


def _moved(report: Report) -> Part:
    columns = ("This change", "#Difference")
    tables = (
        table(metric.moved_title, ("Case", metric.moved_before, *columns), metric.moved, _MOST_ROWS)
        for metric in report.metrics
        if metric.moved
    )
    return Part("moved", "Cases behind the change", tables=tuple(tables))


def _criteria(report: Report) -> Part:
    rows = ((MET[item.met], item.name, suite, *criterion_texts(item)) for suite, item in report.criteria)
    columns = ("Result", "Criterion", "Suite", "#Value", "#Needed")
    shown = table("", columns, rows, _MOST_ROWS, (MET_STATES[item.met] for _, item in report.criteria))
    return Part("criteria", "Criteria", tables=(shown,) if report.criteria else ())


def _spent(report: Report, survey: RunTable) -> Part:
    columns: tuple[str, ...] = ("Used", "#This run", f"#{report.base_name}", "Note")
    rows: tuple[tuple[str, ...], ...] = report.spent
    if not any(before for _, _, before, _ in report.spent):
        columns, rows = (*columns[:2], columns[3]), tuple((what, here, note) for what, here, _, note in report.spent)
    facts = [("Tool calls", f"{survey.calls:,} in {words.count(survey.answers, 'answer')}")] if survey.calls else []
    facts += [("Retries", f"{survey.retries:,}")] if survey.retries else []
    return Part("spent", "What was used", facts=tuple(facts), tables=(table("", columns, rows, _MOST_ROWS),))


def _index(report: Report, survey: RunTable) -> str:
    earlier = report.source.earlier
    index = {
        "row": ROW,
        "statuses": STATUSES,
        "changes": CHANGES,
        "notes": NOTES,
        "outcomes": OUTCOMES,
        "metrics": list(survey.metrics),
        "tags": list(survey.tags),
        "suites": [{"path": path, "name": name} for path, name in report.about.suites],
        "earlier": [{"commit": _commit(entry.commit), "made": moment(entry.created_at)} for entry in earlier],
        "kinds": [[name, KINDS[name].words, KINDS[name].attention] for name in KIND_NAMES],
        "causes": survey.causes,
        "base": report.base_name,
        "baseline": baseline_option(report.results, report.source.presentation.control),
        "base_commit": _commit(report.base.commit) if report.base else "",
    }
    return escape.json_in_html(json.dumps(index, ensure_ascii=False))


# Several runs on one page.


_MOST_CASES = 2_000  # browsers become slow with more rows
#: Score, status and answer of a case in one run; all empty if it has no such case.
_Shown = tuple[float | None, str, str]


def render_runs(runs: Sequence[tuple[str, Results]]) -> Iterator[str]:
    """Render several runs, each with a name: their figures, and every case with its score and answer in each run."""
    found = [{case.id: case for _, case in results.cases()} for _, results in runs]
    names = {id_: case.name for cases in found for id_, case in cases.items()}
    rows = [(name, *_of_runs([cases.get(id_) for cases in found])) for id_, name in names.items()]
    rows.sort(key=lambda row: (row[1] is None, row[1] or 0.0))
    changes = [change for _, change, _ in rows if change is not None]
    lower, higher = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    metrics = dict.fromkeys(name for _, results in runs for name in results.summary.metrics)
    columns = ("Run", "Made", "Commit", "#Passed", "#Mean score", *(f"#{name}" for name in metrics), "#Cost", "#Time")
    figures = table("", columns, (_figures(name, results, metrics) for name, results in runs), len(runs))
    yield from generate(
        "runs.html.j2",
        ("elements.js", "answers.js"),
        page={
            "title": f"{len(runs)} runs",
            "verdict": f"{words.count(lower, 'case')} lower, {higher:,} higher",
            "state": "bad" if lower else "neutral",
            "facts": (),
            "runs": Part("runs", "Runs", tables=(figures,)),
            "names": [name for name, _ in runs],
            "rows": rows[:_MOST_CASES],
            "hidden": max(0, len(rows) - _MOST_CASES),
        },
    )


def _of_runs(cases: Sequence[CaseResult | None]) -> tuple[float | None, list[_Shown]]:
    shown: list[_Shown] = []
    for case in cases:
        iteration = case.telling_iteration if case else None
        last = iteration.turns[-1] if iteration and iteration.turns else None
        answer = (last.error or last.response or "") if last else ""
        shown.append((case.score, case.status, answer) if case else (None, "", ""))
    first, now = shown[0][0], shown[-1][0]
    return None if first is None or now is None else now - first, shown


def _figures(name: str, results: Results, metrics: Iterable[str]) -> tuple[str, ...]:
    run, summary = results.run, results.summary
    means = (summary.metrics[id_].mean if id_ in summary.metrics else None for id_ in metrics)
    passed = f"{summary.passed:,} of {summary.cases:,}"
    cost = words.money(summary.usage.cost_usd) if summary.usage.cost_usd else words.NOTHING
    scores = map(words.number, (summary.score, *means))
    return (name, moment(run.started_at), _commit(run.commit), passed, *scores, cost, words.duration(run.duration_s))


# HTML of templates: escaping of values, and filters for numbers, states and charts.
#
# Texts that filters return are escaped like all others; only ``trusted``, ``chart`` and ``interval`` return markup.


_STATES = {"passed": "good", "failed": "bad", "error": "bad"}


def escaped(value: Any) -> Any:
    """Return a text as HTML; markup and numbers stay as they are."""
    return Markup(escape.html(value)) if type(value) is str else value  # noqa: S704


def _trusted(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - built-in markup, or text that core/escape.py has escaped


def _time(milliseconds: float | None) -> str:
    return words.NOTHING if milliseconds is None else seconds(milliseconds)


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


#: The filters; ``trusted`` is only for the built-in style, script and policy, and for data that is escaped as JSON.
FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "short": escape.one_line,
        "integer": lambda value: f"{value:,}",
        "exact": _exact,
        "number": words.number,
        "signed": words.signed,
        "percent": words.percent,
        "count": words.count,
        "money": words.money,
        "time": _time,
        "state": lambda status: _STATES.get(status, "neutral"),
        "chart": lambda chart: _trusted(svg(chart)),
        "interval": lambda metric: _trusted(interval_svg(metric)),
        "trusted": _trusted,
    }
)

HTML = Language(folder="html", escape=escaped, filters=FILTERS)
