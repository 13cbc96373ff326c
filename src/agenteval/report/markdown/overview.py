"""One line about a job, for the table of a comment that several jobs share."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.core.text.escape import address, markdown_inline
from agenteval.report.presentation import Links, Presentation
from agenteval.report.view import view
from agenteval.report.view.cause_rows import cause_row
from agenteval.report.view.causes import Cause, causes_of, largest_cause
from agenteval.report.view.heading import heading_of
from agenteval.report.view.integrity import rules_matter
from agenteval.report.view.view import GateView, money
from agenteval.results.comparison import ComparedResource
from agenteval.results.model import Results

_LONGEST_JOB = 100
_SEEN = 0.005
_BOLD = 0.2


def overview_row(results: Results, gate: GateView, job: str, presentation: Presentation) -> str:
    """Return the cells of a row: icon, agent, cases that pass, what broke, cost and time per answer, and a link.

    Args:
        results: the run.
        gate: the decision about it.
        job: name of the job.
        presentation: the target of links.
    """
    causes, counts = causes_of(results), view.counts(results)
    heading = heading_of(results, gate, causes)
    run = Links(presentation.site, results.run).workflow_run
    resources = {item.name: item for item in results.comparison.resources} if results.comparison else {}
    cells = (
        heading.icon,
        f"<b>{markdown_inline(heading.name)}</b>{_small(job)}",
        f"{counts.passed:,} of {counts.cases:,}",
        _broke(results, causes),
        _resource(resources.get("cost_usd")),
        _resource(resources.get("latency_ms")),
        f'<a href="{address(f"{run}#artifacts")}">report</a>' if run else "",
    )
    return f"| {' | '.join(cells)} |"


def _small(text: str) -> str:
    return f" <sub>{markdown_inline(text, _LONGEST_JOB)}</sub>" if text else ""


def _broke(results: Results, causes: Sequence[Cause]) -> str:
    for kinds in (("broke", "failed"), ("fell",), ("error",), ("maybe",)):
        found = [cause for cause in causes if cause.kind in kinds]
        if found:
            return _told(kinds[0], found)
    if rules_matter(results.run):
        return "rules changed"
    known = sum(len(cause.cases) for cause in causes if cause.kind == "known")
    return f"–{_small(f'{known:,} known') if known else ''}"


def _told(kind: str, causes: Sequence[Cause]) -> str:
    amount, largest = sum(len(cause.cases) for cause in causes), largest_cause(causes)
    if kind == "fell":
        row = cause_row(causes[0])
        return markdown_inline(f"{row.names[0]}: {row.before} → {row.now}")
    words = {"error": " could not be run", "maybe": " maybe chance"}.get(kind, "")
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
    return f"{markdown_inline(value)} {f'<b>{text}</b>' if abs(change) > _BOLD or resource.exceeded else text}"
