"""Writes ``evaluation/``, the analyses of suites: summary.json, per_trace.jsonl, report.md and report.html."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.records import replace
from agenteval.report.facts import Report
from agenteval.report.html import PageFiles, fill, generate, read_user_template
from agenteval.report.limits import ReportFile, UserTemplateError
from agenteval.report.report import ANALYSES

if TYPE_CHECKING:
    from agenteval.results.analysis.evaluate import AnalysedSuite

_MOST_TRACES = 10_000  # in a user's template
_STATIC = PageFiles("analysis.html.j2")
_INTERACTIVE = replace(_STATIC, scripts=("elements.js", "answers.js"))


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield the files of all analysed suites; if there are several, each suite has a separate folder."""
    created = datetime.now(UTC)
    asking = [suite for suite in report.source.analyses if suite.report is not None]
    for suite in asking:
        folder = f"{ANALYSES}/{_slug(suite.path)}" if len(asking) > 1 else ANALYSES
        for file in suite_files(suite, created):
            yield replace(file, name=f"{folder}/{file.name}")


def suite_files(suite: AnalysedSuite, created: datetime) -> Iterator[ReportFile]:
    """Yield the files of one suite. Data come first, so that a failing report does not lose them.

    Args:
        created: the current time in UTC.
    """
    yield ReportFile("summary.json", [json.dumps(suite.result.content, indent=2, ensure_ascii=False), "\n"])
    lines = (f"{json.dumps(answer.as_json(), ensure_ascii=False)}\n" for answer in suite.answers)
    yield ReportFile("per_trace.jsonl", lines)
    if suite.report is None:
        return
    if suite.report.markdown:
        yield ReportFile("report.md", render_markdown(suite, created))
    if suite.report.html:
        yield _html_file(suite, created)


def render_markdown(suite: AnalysedSuite, created: datetime) -> str:
    """Return the report as Markdown, without charts."""
    # Imported here and below, so that a run without analyses does not import it.
    from agenteval.report.analysis import make_analysis_page
    from agenteval.report.filters import MARKDOWN
    from agenteval.report.templates import built_in_template

    return built_in_template(MARKDOWN, "report.md.j2").render(page=make_analysis_page(suite, created))


def _html_file(suite: AnalysedSuite, created: datetime) -> ReportFile:
    """Return the report as one page that loads nothing, or the user's template with its placeholders replaced."""
    from agenteval.report.analysis import make_analysis_page

    template = suite.report.template if suite.report else None
    notices: tuple[str, ...] = ()
    if template is not None:
        try:
            return ReportFile("report.html", _filled(read_user_template(Path(template)), suite, created))
        except UserTemplateError as error:
            notices = (str(error),)
    page = make_analysis_page(suite, created, notices)
    parts = generate(_INTERACTIVE if page.interactive and page.answers else _STATIC, page=page)
    return ReportFile("report.html", parts, notices)


def _filled(template: str, suite: AnalysedSuite, created: datetime) -> str:
    summary = dict(suite.result.content)
    traces = [answer.as_json() for answer in itertools.islice(suite.answers, _MOST_TRACES)]
    subtitle = f"{len(suite.answers):,} answers, {created:%Y-%m-%d %H:%M} UTC"
    if left_out := len(suite.answers) - len(traces):
        summary["per_trace_left_out"] = left_out
        subtitle = f"{subtitle}; {left_out:,} of them only in per_trace.jsonl"
    texts = {"TITLE": suite.name, "DATE": f"{created:%Y-%m-%dT%H:%M:%SZ}", "SUBTITLE": subtitle}
    return fill(template, texts, summary, traces)


def _slug(path: str) -> str:
    return re.sub(r"[^\w.-]+", "_", path).strip("_.") or "suite"
