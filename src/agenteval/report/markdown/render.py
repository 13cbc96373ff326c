"""The pull-request comment and the job summary: Markdown from Jinja templates made of named blocks.

A template gets ``report`` (a :class:`~agenteval.report.markdown.page.Page`) and ``detail`` (a
:class:`~agenteval.report.size_limits.Detail`). Every ``{{ … }}`` of ours ends in one of the filters of
:mod:`~agenteval.report.markdown.filters`. A user template that cannot be used is replaced by the built-in one, with
a warning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import InfrastructureError
from agenteval.report.markdown.source import Source
from agenteval.report.presentation import Presentation
from agenteval.report.size_limits import (
    COMMENT_LEVELS,
    COMMENT_LIMIT,
    SUMMARY_LEVELS,
    SUMMARY_LIMIT,
    Detail,
    characters,
    fit,
    utf8_bytes,
)
from agenteval.report.view.view import GateView
from agenteval.results.model import Results

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["GateView", "render_comment", "render_summary", "template_directory"]

_PACKAGE = Path(__file__).parents[2]
_PLAIN = Presentation()

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Comment or summary."""

    template: str
    levels: tuple[Detail, ...]
    size: Callable[[str], int]
    limit: int


def _unheard(_: str) -> None:
    """The text itself says what went wrong."""


def render_comment(
    results: Results,
    gate: GateView,
    comment_id: str = "",
    *,
    limit: int = COMMENT_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _unheard,
) -> str:
    """The body of the pull-request comment, without the hidden marker, in at most ``limit`` characters.

    Args:
        results: the run.
        gate: what the gate says.
        comment_id: shown in the first line, to tell apart the comments of several jobs.
        limit: characters, as GitHub counts them.
        presentation: the user's own template, and where links lead.
        warn: told why the user's own template was not used.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    title = f"agenteval ({comment_id})" if comment_id else "agenteval"
    source = Source.of(results, gate, title, "the job summary and report.html", presentation.site)
    kind = _Kind("comment.md.j2", COMMENT_LEVELS, characters, limit)
    return _rendered(kind, source, presentation.comment_template, warn)


def render_summary(
    results: Results,
    gate: GateView,
    *,
    limit: int = SUMMARY_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _unheard,
) -> str:
    """The job summary, in at most ``limit`` bytes: what the comment says, every case, and failures in full.

    Args and errors are those of :func:`render_comment`.
    """
    source = Source.of(results, gate, "agenteval", "report.html and results.json", presentation.site)
    kind = _Kind("summary.md.j2", SUMMARY_LEVELS, utf8_bytes, limit)
    return _rendered(kind, source, presentation.summary_template, warn)


def _rendered(kind: _Kind, source: Source, own: Path | None, warn: Warn) -> str:
    if own is not None:
        from agenteval.report.markdown.user_template import UserTemplateError, render_user_template

        try:
            return render_user_template(own, source, kind.size, kind.limit, kind.levels)
        except UserTemplateError as error:
            warn(str(error))
            # It may be known already, from the file that was written before.
            source = replace(source, warnings=tuple(dict.fromkeys((str(error), *source.warnings))))
    template = _environment().get_template(kind.template)
    return fit(
        lambda detail: template.render(report=source.page(detail), detail=detail), kind.size, kind.limit, kind.levels
    )


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
    from agenteval.report.markdown.environment import make_environment

    return make_environment(template_directory())
