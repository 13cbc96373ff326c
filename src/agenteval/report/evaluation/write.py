"""Writes the evaluation of a suite: summary.json, per_trace.jsonl, report.md and report.html.

The templates get ``page`` (a :class:`~agenteval.report.evaluation.parts.Page`). Nothing is escaped by itself: every
``{{ … }}`` ends in one of the filters of :data:`MARKDOWN_FILTERS` or :data:`HTML_FILTERS`.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from agenteval.core.errors import InfrastructureError
from agenteval.core.paths import display_path
from agenteval.core.text import escape
from agenteval.report.evaluation import user_template as own_template
from agenteval.report.evaluation.page import Source, make_page
from agenteval.report.evaluation.wording import time
from agenteval.report.html import svg as charts
from agenteval.report.markdown.render import template_directory
from agenteval.report.view.view import number
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import as_json, trace_json
from agenteval.results.analysis.result import EvaluationResult
from agenteval.suite.evaluation import EvaluationReport

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["HTML_FILTERS", "MARKDOWN_FILTERS", "render_html", "render_markdown", "write_evaluation"]

_MOST_OWN_TRACES = 10_000
_LINES_AT_ONCE = 1_000


def write_evaluation(
    result: EvaluationResult,
    answers: Sequence[EvaluatedAnswer],
    report: EvaluationReport,
    title: str,
    directory: Path,
) -> list[Path]:
    """Write the files that the settings ask for into a directory, which is made where it is missing.

    ``summary.json`` and ``per_trace.jsonl`` come first and always: a report that cannot be made loses nothing.

    Args:
        result: of the run.
        answers: what it was made of.
        report: which reports, and how.
        title: what was evaluated.
        directory: for the files.

    Returns:
        The files.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    created = datetime.now(UTC)
    contents: dict[str, Callable[[], Iterable[str]]] = {
        "summary.json": lambda: [json.dumps(as_json(result), indent=2, ensure_ascii=False), "\n"],
        "per_trace.jsonl": lambda: (f"{json.dumps(trace_json(answer), ensure_ascii=False)}\n" for answer in answers),
    }
    if report.markdown:
        contents["report.md"] = lambda: [render_markdown(result, answers, report, title, created)]
    if report.html:
        contents["report.html"] = lambda: [render_html(result, answers, report, title, created)]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make {directory}: {error.strerror}") from None
    for name, content in contents.items():
        _write(directory / name, content())
    return [directory / name for name in contents]


def render_markdown(
    result: EvaluationResult,
    answers: Sequence[EvaluatedAnswer],
    report: EvaluationReport,
    title: str,
    created: datetime,
) -> str:
    """The report as Markdown, without charts.

    Args:
        result: of the run.
        answers: what it was made of.
        report: the settings.
        title: what was evaluated.
        created: now, in UTC.
    """
    page = make_page(Source(result, answers, report), title, created)
    return _template("evaluation.md.j2").render(page=page, tables=report.tables)


def render_html(
    result: EvaluationResult,
    answers: Sequence[EvaluatedAnswer],
    report: EvaluationReport,
    title: str,
    created: datetime,
) -> str:
    """The report as one HTML file that loads nothing, or the user's own template with its placeholders filled.

    An own template that cannot be read is replaced by ours, with a notice.

    Args:
        result: of the run.
        answers: what it was made of.
        report: the settings.
        title: what was evaluated.
        created: now, in UTC.
    """
    notice = ""
    if report.template is not None:
        try:
            template = Path(report.template).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            notice = f"the template {display_path(Path(report.template))} cannot be read: {why}"
        else:
            return _own(template, result, answers, title, created)
    page = make_page(Source(result, answers, report), title, created)
    script = _script() if page.interactive and page.answers else ""
    return _template("evaluation.html.j2").render(
        page=page, tables=report.tables, notice=notice, script=script, policy=_policy(script)
    )


def _own(
    template: str, result: EvaluationResult, answers: Sequence[EvaluatedAnswer], title: str, created: datetime
) -> str:
    summary = as_json(result)
    traces = [trace_json(answer) for answer in itertools.islice(answers, _MOST_OWN_TRACES)]
    subtitle = f"{len(answers):,} answers, {created:%Y-%m-%d %H:%M} UTC"
    if left_out := len(answers) - len(traces):
        summary["per_trace_left_out"] = left_out
        subtitle = f"{subtitle}; {left_out:,} of them only in per_trace.jsonl"
    texts = {"TITLE": title, "DATE": f"{created:%Y-%m-%dT%H:%M:%SZ}", "SUBTITLE": subtitle}
    return own_template.fill(template, texts, summary, traces)


@functools.cache
def _script() -> str:
    return (template_directory() / "evaluation.js").read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """A content security policy: nothing is loaded, and no script runs but ours."""
    digest = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}"


@functools.cache
def _template(name: str) -> Template:
    # Imported here: a program start that renders nothing does not pay for it.
    from jinja2 import FileSystemLoader
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from agenteval.report.templating import OPTIONS, CompiledTemplates

    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(template_directory()),
        autoescape=False,  # each format has rules of its own; a test checks that every value is filtered
        bytecode_cache=CompiledTemplates(template_directory()),
        **OPTIONS,
    )
    environment.filters.update(MARKDOWN_FILTERS if name.endswith(".md.j2") else HTML_FILTERS)
    return environment.get_template(name)


def _html(text: str, limit: int | None = None) -> str:
    return escape.html(text if limit is None else escape.one_line(text, limit))


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


#: What an expression in the Markdown template may end with.
MARKDOWN_FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "inline": escape.markdown_inline,
        "integer": lambda value: f"{value:,}",
        "icon": lambda success: {True: "✅", False: "❌", "good": "✅", "bad": "❌"}.get(success, "⚪"),
    }
)

#: What an expression in the HTML template may end with: ``trusted`` is only for what we wrote ourselves.
HTML_FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "html": _html,
        "integer": lambda value: f"{value:,}",
        "number": number,
        "time": time,
        "exact": _exact,
        "chart": charts.svg,
        "trusted": str,
        "state": lambda success: {True: "good", False: "bad"}.get(success, "neutral"),
    }
)


def _write(path: Path, parts: Iterable[str]) -> None:
    """Write a file piece by piece so that it is there as a whole or not at all."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InfrastructureError(f"cannot write to {path.parent}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            for lines in _batches(parts):
                file.write("".join(lines))
        # mkstemp makes files that only their owner reads; reports are for everybody.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()


def _batches(parts: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(parts)
    while batch := list(itertools.islice(rest, _LINES_AT_ONCE)):
        yield batch
