"""Renders the comment and the job summary from Jinja templates with named blocks.

A template gets ``report`` (:class:`~agenteval.report.facts.Report`) and ``detail``
(:class:`~agenteval.report.markdown.Detail`). Every ``{{ … }}`` in a built-in template ends in one of the filters of
:mod:`~agenteval.report.templates`. If a user template cannot be used, the built-in one replaces it, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass
from agenteval.report.report import ReportFile, UserTemplateError

if TYPE_CHECKING:
    from agenteval.report.facts import Report

# Size limits: a report that is too long is rendered again with less detail, never cut.
#
# GitHub rejects a comment above 65,536 characters, and does not show a job summary above 1 MiB.


COMMENT_LIMIT = 65_000
SUMMARY_LIMIT = 1_000_000


class ReportTooLargeError(AgentEvalError):
    """A report does not fit even with the least detail: the limit was lowered, or the template is a user's."""


@dataclass(frozen=True)
class Detail:
    """The amount of detail in a report.

    Attributes:
        max_cases: cases of one section that are shown with questions and answers.
        max_asides: rows of the less important sections: known failures, skipped cases, metrics; 0 omits them.
        max_text: characters of one answer or reason.
        reduced: whether this is less than the full report.
    """

    max_cases: int
    max_rows: int
    max_asides: int
    max_text: int
    reduced: bool = True


#: The levels of a pull-request comment. First less important sections are omitted, then cases, then parts of answers;
#: the last level has only the verdict and the numbers.
COMMENT_LEVELS = (
    Detail(max_cases=25, max_rows=100, max_asides=100, max_text=1_500, reduced=False),
    Detail(max_cases=25, max_rows=30, max_asides=10, max_text=1_500),
    Detail(max_cases=25, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=10, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=500),
    Detail(max_cases=3, max_rows=10, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=10, max_asides=0, max_text=100),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)

#: The levels of a job summary.
SUMMARY_LEVELS = (
    Detail(max_cases=100, max_rows=2_000, max_asides=2_000, max_text=4_000, reduced=False),
    Detail(max_cases=100, max_rows=500, max_asides=100, max_text=4_000),
    Detail(max_cases=50, max_rows=500, max_asides=0, max_text=4_000),
    Detail(max_cases=25, max_rows=200, max_asides=0, max_text=2_000),
    Detail(max_cases=10, max_rows=200, max_asides=0, max_text=1_000),
    Detail(max_cases=5, max_rows=100, max_asides=0, max_text=400),
    Detail(max_cases=0, max_rows=100, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)


def fit(
    render: Callable[[Detail], str],
    size: Callable[[str], int],
    limit: int,
    levels: tuple[Detail, ...] = COMMENT_LEVELS,
) -> str:
    """Render with the most detail whose ``size`` is within ``limit``.

    Raises:
        ReportTooLargeError: not even the last level fits.
    """
    for detail in levels:
        text = render(detail)
        if size(text) <= limit:
            return text
    raise ReportTooLargeError(f"the report does not fit into {limit:,} even with the least detail")


def characters(text: str) -> int:
    """Return the length of a text in UTF-16 units, which is the highest of all ways to count characters."""
    return len(text.encode("utf-16-le")) // 2


def utf8_bytes(text: str) -> int:
    """Return the size of a file with this text."""
    return len(text.encode())


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
