"""The pull-request comment and the job summary: Markdown from Jinja templates made of named blocks.

A template gets ``report`` (a :class:`~agenteval.report.page.Page`) and ``detail`` (a
:class:`~agenteval.report.budget.Detail`). Nothing is escaped by itself: every ``{{ … }}`` ends in one of the
filters of :data:`FILTERS`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from agenteval.errors import InfrastructureError
from agenteval.report import escape, view
from agenteval.report.budget import (
    COMMENT_LEVELS,
    COMMENT_LIMIT,
    SUMMARY_LEVELS,
    SUMMARY_LIMIT,
    Detail,
    characters,
    fit,
    utf8_bytes,
)
from agenteval.report.page import Source
from agenteval.report.view import GateView
from agenteval.results.model import Results, Score

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["FILTERS", "GateView", "render_comment", "render_summary", "template_directory"]

_PACKAGE = Path(__file__).parents[1]


def render_comment(results: Results, gate: GateView, comment_id: str = "", *, limit: int = COMMENT_LIMIT) -> str:
    """The body of the pull-request comment, without the hidden marker, in at most ``limit`` characters.

    Args:
        comment_id: shown in the first line, to tell apart the comments of several jobs.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    source = Source.of(results, gate, f"agenteval ({comment_id})" if comment_id else "agenteval")
    return fit(_renderer("comment.md.j2", source), characters, limit, COMMENT_LEVELS)


def render_summary(results: Results, gate: GateView, *, limit: int = SUMMARY_LIMIT) -> str:
    """The job summary, in at most ``limit`` bytes: what the comment says, every case, and failures in full.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    source = Source.of(results, gate)
    return fit(_renderer("summary.md.j2", source), utf8_bytes, limit, SUMMARY_LEVELS)


def _renderer(name: str, source: Source) -> Callable[[Detail], str]:
    template = _environment().get_template(name)
    return lambda detail: template.render(report=source.page(detail), detail=detail)


def template_directory() -> Path:
    """Where the templates lie: in the installed package, or beside ``src`` in a checkout.

    Raises:
        InfrastructureError: the installation is broken; neither place exists.
    """
    places = (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates")
    for directory in places:
        if (directory / "comment.md.j2").is_file():
            return directory
    tried = " or ".join(str(directory) for directory in places)
    raise InfrastructureError(f"report templates are missing: no comment.md.j2 in {tried}; install agenteval again")


@functools.cache
def _environment() -> Environment:
    # Imported here: a program start that renders nothing does not pay for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template_directory()),
        autoescape=False,  # noqa: S701 - Markdown has rules of its own; a test checks that every value is filtered
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    return environment


_ICONS = {"passed": "✅", "failed": "❌", "error": "💥", "skipped": "⚪"}
_VERDICTS = {True: "✅", False: "❌", None: "⚪"}


def _mark(score: Score) -> str:
    if score.status == "error":
        return "💥"
    return _VERDICTS[score.passed]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


#: What a template may end an expression with: escapes for foreign text, and ways to write a number.
FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "inline": escape.markdown_inline,
        "lines": escape.markdown_lines,
        "block": escape.markdown_block,
        "data": lambda value, limit=None: escape.markdown_inline(_compact(value), limit),
        "number": view.number,
        "signed": view.signed,
        "percent": view.percent,
        "count": view.count,
        "commit": lambda sha: "".join(filter(str.isalnum, sha.encode("ascii", "ignore").decode()))[:12],
        "integer": lambda value: f"{value:,}",
        "money": lambda dollars: escape.markdown_inline(view.money(dollars)),
        "duration": view.duration,
        "values": lambda score: escape.markdown_inline(view.score_values(score)),
        "icon": lambda passed: _VERDICTS[passed],
        "status_icon": lambda status: _ICONS.get(status, "⚪"),
        "mark": _mark,
        "met": lambda criterion: _VERDICTS[criterion.met],
    }
)
