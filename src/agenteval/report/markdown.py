"""Renders the comment and the job summary from Jinja templates with named blocks.

A template gets ``report`` (:class:`~agenteval.report.facts.Report`) and ``detail``
(:class:`~agenteval.report.parts.Detail`). Every ``{{ … }}`` in a built-in template ends in one of the filters of
:mod:`~agenteval.report.templates`. If a user template cannot be used, the built-in one replaces it, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.report.parts import (
    COMMENT_LEVELS,
    COMMENT_LIMIT,
    SUMMARY_LEVELS,
    SUMMARY_LIMIT,
    Detail,
    ReportFile,
    UserTemplateError,
    characters,
    fit,
    utf8_bytes,
)

if TYPE_CHECKING:
    from agenteval.report.facts import Report

Warn = Callable[[str], None]


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield ``summary.md`` and ``comment.md``."""
    for name, render in (("summary.md", render_summary), ("comment.md", render_comment)):
        warnings: list[str] = []
        yield ReportFile(name, render(report, warn=warnings.append), tuple(warnings))


def render_comment(
    report: Report,
    job: str = "",
    *,
    limit: int = COMMENT_LIMIT,
    size: Callable[[str], int] = characters,
    warn: Warn = lambda _: None,
) -> str:
    """Return the body of the pull-request comment, without the hidden marker, in at most ``limit`` characters.

    Args:
        job: shown in the last line, to tell the sections of several jobs apart.
        limit: the largest ``size``; a comment has characters as GitHub counts them, a check run bytes.
        warn: called with the reason if the user's template was not used.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    shown = report.shown_in("the job summary and report.html", job)
    own = report.source.presentation.comment_template
    return _rendered("comment.md.j2", shown, own, lambda render: fit(render, size, limit, COMMENT_LEVELS), warn)


def render_summary(report: Report, *, limit: int = SUMMARY_LIMIT, warn: Warn = lambda _: None) -> str:
    """Return the job summary, in at most ``limit`` bytes: why, how, and what the run cost.

    The arguments and errors are those of :func:`render_comment`.
    """
    own = report.source.presentation.summary_template
    return _rendered(
        "summary.md.j2", report, own, lambda render: fit(render, utf8_bytes, limit, SUMMARY_LEVELS), warn
    )


def _rendered(
    name: str, report: Report, own: Path | None, fitted: Callable[[Callable[[Detail], str]], str], warn: Warn
) -> str:
    if own is not None:
        from agenteval.report.user_template import render_user_template

        try:
            return render_user_template(own, report, fitted)
        except UserTemplateError as error:
            warn(str(error))
            report = report.with_warnings([str(error)])
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.templates import MARKDOWN, built_in_template

    template = built_in_template(MARKDOWN, name)
    return fitted(lambda detail: template.render(report=report, detail=detail))
