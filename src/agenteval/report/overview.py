"""What a comment shows that several jobs share: one line for each, and words for those without a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval.core.errors import Problem
from agenteval.core.escape import address, markdown_inline, markdown_lines
from agenteval.core.mistakes import counted, mistakes
from agenteval.core.secrets import mask
from agenteval.report.causes import Cause, largest_cause
from agenteval.report.facts import Report
from agenteval.report.words import money
from agenteval.results.comparison import ComparedResource

_MOST = 50
_LONGEST = 600


def render_problems(problems: Iterable[Problem], name: str = "") -> str:
    """Return Markdown for summary and comment: the mistakes in the order in which they were found.

    Args:
        name: name of the job, for the heading; as in the other texts.
    """
    found = mistakes(problems)
    lines = [f"{_heading(name)}: {counted(found)}, nothing was evaluated", ""]
    lines += [
        f"- {markdown_inline(mask(str(mistake)), _LONGEST)} ([help]({mistake.page}))" for mistake in found[:_MOST]
    ]
    if len(found) > _MOST:
        lines.append(f"- … and {len(found) - _MOST} more in the log")
    return "\n".join(lines) + "\n"


def render_running(commit: str, url: str) -> str:
    """Return Markdown for a run in progress."""
    return f"⏳ **The evaluation of `{_short(commit)}` is running** ([log]({url}))."


def running_note(commit: str, url: str) -> str:
    """Return the line above the previous result while a new run is in progress."""
    return f"{render_running(commit, url)} Below is the result of the previous run."


def render_unfinished(commit: str, url: str, name: str = "") -> str:
    """Return Markdown for a run that ended without a report."""
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` did not finish\n\n"
        f"The run ended before it could report: it was cancelled, out of time, or out of memory. "
        f"See the [log]({url}).\n"
    )


def render_nothing_left(commit: str, url: str, reason: str, name: str = "") -> str:
    """Return Markdown for a fork's run without usable results.

    Args:
        url: address of the workflow run.
    """
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` left no results\n\n{reason}. See the [log]({url}).\n"
    )


def render_unpublished(problems: Sequence[str]) -> str:
    """Return Markdown for the job summary: why the comment or the check run could not be written."""
    lines = ["#### ⚠️ Not everything was published on GitHub", ""]
    lines += [f"- {markdown_lines(mask(problem), _LONGEST)}" for problem in problems[:_MOST]]
    return "\n".join(lines) + "\n"


def _heading(name: str) -> str:
    return f"### 💥 agenteval · {markdown_inline(name)}" if name else "### 💥 agenteval"


def _short(commit: str) -> str:
    return "".join(filter(str.isalnum, commit))[:12]


_LONGEST_JOB = 100
_SEEN = 0.005
_BOLD = 0.2


def overview_row(report: Report, job: str) -> str:
    """Return the cells of a row: icon, agent, cases that pass, what broke, cost and time per answer, and a link."""
    resources = {item.name: item for item in (report.base.resources if report.base else ())}
    cells = (
        report.heading.icon,
        f"<b>{markdown_inline(report.heading.name)}</b>{_small(job)}",
        f"{report.counts.passed:,} of {report.counts.cases:,}",
        _broke(report),
        _resource(resources.get("cost_usd")),
        _resource(resources.get("latency_ms")),
        f'<a href="{address(f"{report.about.link}#artifacts")}">report</a>' if report.about.link else "",
    )
    return f"| {' | '.join(cells)} |"


def _small(text: str) -> str:
    return f" <sub>{markdown_inline(text, _LONGEST_JOB)}</sub>" if text else ""


def _broke(report: Report) -> str:
    for kinds in (("broke", "failed"), ("fell",), ("error",), ("suspicious",)):
        found = [cause for cause in report.causes if cause.kind in kinds]
        if found:
            return _told(kinds[0], found)
    if report.rules_matter:
        return "rules changed"
    known = sum(len(cause.cases) for cause in report.causes if cause.kind == "known")
    return f"–{_small(f'{known:,} known') if known else ''}"


def _told(kind: str, causes: Sequence[Cause]) -> str:
    amount, largest = sum(len(cause.cases) for cause in causes), largest_cause(causes)
    if kind == "fell":
        more = f" and {len(causes) - 1:,} more" if len(causes) > 1 else ""
        return markdown_inline(f"{causes[0].names[0]}: {causes[0].before} → {causes[0].now}{more}")
    words = {"error": " could not be run", "suspicious": " may be worse"}.get(kind, "")
    same = f", {len(largest.cases):,} for the same reason" if largest is not None and not words else ""
    return f"<b>{amount:,}</b>{words}{same}"


def _resource(resource: ComparedResource | None) -> str:
    if resource is None:
        return ""
    value = money(resource.current) if resource.name == "cost_usd" else f"{resource.current / 1000:,.1f} s"
    change = resource.change
    if change is None or abs(change) < _SEEN:
        return markdown_inline(value)
    text = f"{change:+.0%}".replace("%", " %").replace("-", "−")
    return f"{markdown_inline(value)} {f'<b>{text}</b>' if abs(change) > _BOLD else text}"
