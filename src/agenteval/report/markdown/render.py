"""Renders the pull-request comment and the job summary from Jinja templates with named blocks.

A template gets ``report`` (a :class:`~agenteval.report.markdown.page.Page`) and ``detail`` (a
:class:`~agenteval.report.size_limits.Detail`). Every ``{{ … }}`` in a built-in template ends in one of the filters of
:mod:`~agenteval.report.markdown.filters`. If a user template cannot be used, the built-in one replaces it, with a
warning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.report.markdown.page import Page
from agenteval.report.markdown.source import Source
from agenteval.report.markdown.summary_page import summary_page
from agenteval.report.presentation import Presentation
from agenteval.report.report import Report, ReportFile
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
from agenteval.report.template_files import UserTemplateError
from agenteval.report.view.view import GateView
from agenteval.results.archive import IN_MEMORY, Archive
from agenteval.results.model import Results

_PLAIN = Presentation()

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Comment or summary."""

    template: str
    levels: tuple[Detail, ...]
    size: Callable[[str], int]
    limit: int
    page: Callable[[Source, Detail], Page] = Source.page


def _ignore(_: str) -> None:
    """Ignore a warning that the text contains."""


def report_files(report: Report, results: Results) -> Iterator[ReportFile]:
    """Yield ``summary.md`` and ``comment.md``."""
    gate, look = report.gate, report.presentation
    warnings: list[str] = []
    summary = render_summary(results, gate, archive=report.archive, presentation=look, warn=warnings.append)
    yield ReportFile("summary.md", summary, tuple(warnings))
    warnings = []
    comment = render_comment(results, gate, presentation=look, warn=warnings.append)
    yield ReportFile("comment.md", comment, tuple(warnings))


def render_comment(
    results: Results,
    gate: GateView,
    name: str = "",
    *,
    limit: int = COMMENT_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _ignore,
) -> str:
    """Return the body of the pull-request comment, without the hidden marker, in at most ``limit`` characters.

    Args:
        results: the run.
        gate: the gate's decision.
        name: shown in the last line, to tell the sections of several jobs apart.
        limit: maximum number of characters, as GitHub counts them.
        presentation: the user's template, and the target of links.
        warn: called with the reason if the user's template was not used.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    source = Source.of(results, gate, name, "the job summary and report.html", presentation.site)
    kind = _Kind("comment.md.j2", COMMENT_LEVELS, characters, limit)
    return _rendered(kind, source, presentation.comment_template, presentation.template_texts, warn)


def render_check(
    results: Results, gate: GateView, *, limit: int, presentation: Presentation = _PLAIN, warn: Warn = _ignore
) -> str:
    """Return the text of the comment for a check run, in at most ``limit`` bytes; see :func:`render_comment`."""
    source = Source.of(results, gate, "", "the job summary and report.html", presentation.site)
    kind = _Kind("comment.md.j2", COMMENT_LEVELS, utf8_bytes, limit)
    return _rendered(kind, source, presentation.comment_template, presentation.template_texts, warn)


def render_summary(
    results: Results,
    gate: GateView,
    *,
    archive: Archive = IN_MEMORY,
    limit: int = SUMMARY_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _ignore,
) -> str:
    """Return the job summary, in at most ``limit`` bytes: why, how, and what the run cost.

    The arguments and errors are those of :func:`render_comment`; ``archive`` counts the cases of each suite.
    """
    source = Source.of(results, gate, "", "report.html and results.json", presentation.site, archive=archive)
    kind = _Kind("summary.md.j2", SUMMARY_LEVELS, utf8_bytes, limit, summary_page)
    return _rendered(kind, source, presentation.summary_template, presentation.template_texts, warn)


def _rendered(kind: _Kind, source: Source, own: Path | None, texts: Mapping[str, str] | None, warn: Warn) -> str:
    if own is not None:
        from agenteval.report.markdown.user_template import render_user_template

        try:
            page = functools.partial(kind.page, source)
            return render_user_template(own, page, kind.size, kind.limit, kind.levels, texts=texts)
        except UserTemplateError as error:
            warn(str(error))
            # The gate may contain the warning already, from an earlier file.
            source = replace(source, warnings=tuple(dict.fromkeys((str(error), *source.warnings))))
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.markdown.filters import MARKDOWN
    from agenteval.report.templating import built_in_template

    template = built_in_template(MARKDOWN, kind.template)
    return fit(
        lambda detail: template.render(report=kind.page(source, detail), detail=detail),
        kind.size,
        kind.limit,
        kind.levels,
    )
