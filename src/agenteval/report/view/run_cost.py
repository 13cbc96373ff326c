"""What a run used, how that changed, and what explains it, for the HTML report."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.comparison_rows import resource_rows
from agenteval.report.view.parts import Figure, Part, State, table
from agenteval.results.comparison import ComparedResource, Comparison
from agenteval.results.model import Results

_LONGEST_LABEL = 80
_WORTH_EXPLAINING = 0.05  # change of the cost
_EXPLAINED = 0.5  # share of the change of the cost that the tokens must have changed by


def base_name(comparison: Comparison | None) -> str:
    """Return the name of the other side: its branch, or ``baseline``."""
    ref = comparison.baseline.ref if comparison else None
    return one_line((ref or "baseline").removeprefix("refs/heads/"), _LONGEST_LABEL)


def run_cost(results: Results) -> Part:
    """Return tokens, cost and time, with their changes against the baseline."""
    usage = results.summary.usage
    figures = (
        Figure("Cost", view.money(usage.cost_usd) if usage.cost_usd else view.NOTHING, view.from_cache(usage)),
        Figure("Input tokens", f"{usage.input_tokens:,}"),
        Figure("Output tokens", f"{usage.output_tokens:,}"),
        Figure("Model calls", f"{usage.llm_calls:,}"),
        Figure("Duration", view.duration(results.run.duration_s)),
    )
    comparison = results.comparison
    compared = resource_rows(comparison) if comparison else ()
    rows = (
        (
            "above" if row.exceeded else "within" if row.allowed else "none",
            row.name,
            row.before,
            row.after,
            row.change or view.NOTHING,
            row.allowed or view.NOTHING,
        )
        for row in compared
    )
    columns = ("Limit", "For each answer", f"#{base_name(comparison)}", "#Here", "#Change", "#Allowed")
    states: tuple[State, ...] = tuple("bad" if row.exceeded else "neutral" for row in compared)
    return Part(
        "spent",
        "What was used",
        paragraphs=tuple(explanations(comparison.resources if comparison else [])),
        figures=figures,
        tables=(table("", columns, rows, len(compared), states),) if compared else (),
    )


def explanations(resources: list[ComparedResource]) -> Iterator[str]:
    """Yield what explains a change of the cost per answer, if it is worth explaining."""
    changes = {resource.name: resource.change for resource in resources}
    cost, tokens = changes.get("cost_usd"), changes.get("tokens")
    if cost is None or tokens is None or abs(cost) < _WORTH_EXPLAINING:
        return
    verb = "rose" if cost > 0 else "fell"
    if tokens * cost > 0 and abs(tokens) >= _EXPLAINED * abs(cost):
        yield f"The cost per answer {verb} with the number of tokens ({tokens:+.0%})."
    else:
        yield (
            f"The cost per answer {verb} by {abs(cost):.0%}, the number of tokens changed by {tokens:+.0%}: "
            "another model, another price, or another share of answers from a cache explains it."
        )
