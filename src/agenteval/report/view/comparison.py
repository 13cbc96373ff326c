"""A run beside its baseline: rows of metrics, cost, moved cases, goals and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from typing import NamedTuple

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass
from agenteval.gate.words import percent, share
from agenteval.report.view import view
from agenteval.report.view.parts import Excerpt, Figure, Part, table
from agenteval.report.view.view import NOTHING, count, money, number, signed
from agenteval.results.case import CaseResult
from agenteval.results.comparison import ComparedCase, ComparedMetric, ComparedResource, Comparison, FailedOf
from agenteval.results.model import Results

_LEAST_CHANGE = 0.005
_RESOURCES = {"latency_ms": "latency", "tokens": "tokens per answer", "cost_usd": "cost per answer"}


@dataclass(frozen=True)
class EvidenceRow:
    """One metric of a comparison.

    Attributes:
        change: the difference of the means with its interval.
        p: with the limit up to which a drop is proven.
        basis: the number of cases, runs of the pool, iterations and passes.
        catches: the drop that is usually found.
    """

    id: str
    gating: bool
    word: str
    change: str
    p: str
    basis: str
    catches: str


def evidence_rows(comparison: Comparison) -> Iterator[EvidenceRow]:
    """Yield every metric that can fail the gate."""
    for metric in comparison.metrics:
        if metric.gating:
            yield EvidenceRow(
                id=metric.id,
                gating=metric.gating,
                word=metric.word,
                change=_change(metric),
                p=_p(metric),
                basis=_basis(metric),
                catches=_catches(metric),
            )


@dataclass(frozen=True)
class ResourceRow:
    """Time, tokens or cost per answer in both runs; ``change`` is empty if the baseline used none."""

    name: str
    before: str
    after: str
    change: str


def resource_rows(comparison: Comparison) -> tuple[ResourceRow, ...]:
    """Return the resources that both runs recorded."""
    return tuple(
        ResourceRow(
            name=_RESOURCES[resource.name],
            before=_amount(resource, resource.baseline),
            after=_amount(resource, resource.current),
            change=_share(resource.change),
        )
        for resource in comparison.resources
    )


def resource_changes(comparison: Comparison) -> str:
    """Return ``latency +50%, cost per answer +3%``; empty if nothing changed by as much as a percent."""
    changed = [
        f"{_RESOURCES[resource.name]} {_share(resource.change)}"
        for resource in comparison.resources
        if resource.change is not None and abs(resource.change) >= _LEAST_CHANGE
    ]
    return ", ".join(part.rstrip() for part in changed)


def history_note(case: ComparedCase) -> str:
    """Return the result of a case in the baseline runs; empty if unknown."""
    history = case.history
    if history is None:
        return ""
    passed = round(history.pass_rate * history.iterations)
    return f"passed {passed} of {count(history.iterations, 'iteration')} in {count(history.runs, 'baseline run')}"


def verdict_note(comparison: Comparison) -> str:
    """Return the result of a comparison without a broken case, in words."""
    words = {"proven": "no single case is proven worse", "unproven": "comparison unproven"}
    return words.get(comparison.word, comparison.headline)


def _share(change: float | None) -> str:
    return "" if change is None else f"{change:+.0%}"


def _change(metric: ComparedMetric) -> str:
    shown = signed if metric.allowed is None else _share
    between = "" if metric.low is None or metric.high is None else f" ({shown(metric.low)} to {shown(metric.high)})"
    return f"{shown(metric.difference)}{between}"


def _p(metric: ComparedMetric) -> str:
    if metric.p is None or metric.limit is None:
        return NOTHING
    return f"{share(metric.p, metric.limit)}, limit {percent(metric.limit)}"


def _basis(metric: ComparedMetric) -> str:
    parts = [count(metric.n, "case")]
    if metric.runs is not None:
        parts.append(count(metric.runs, "baseline run"))
    if metric.iterations is not None:
        parts.append(count(metric.iterations, "iteration"))
    if metric.passes is not None:
        parts.append(f"{count(metric.passes, 'pass', 'passes')} each")
    return ", ".join(parts)


def _catches(metric: ComparedMetric) -> str:
    return NOTHING if metric.detectable_drop is None else f"{metric.detectable_drop:.2f}"


def _amount(resource: ComparedResource, value: float) -> str:
    if resource.name == "cost_usd":
        return money(value)
    if resource.name == "latency_ms":
        return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
    return number(value) if value < 10 else f"{value:,.0f}"


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
            row.name,
            row.before,
            row.after,
            row.change or view.NOTHING,
        )
        for row in compared
    )
    columns = ("For each answer", f"#{base_name(comparison)}", "#Here", "#Change")
    return Part(
        "spent",
        "What was used",
        paragraphs=tuple(explanations(comparison.resources if comparison else [])),
        figures=figures,
        tables=(table("", columns, rows, len(compared)),) if compared else (),
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


_COMMIT = 7


@dataclass(frozen=True)
class MovedRow:
    """One case: its mean and failed iterations on both sides, and the difference of the means."""

    name: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class MovedCases:
    """The cases that moved as the mean of a metric did, those with the largest share of the change first.

    Attributes:
        before: what the change was compared with, as the title of a column.
    """

    title: str
    before: str
    rows: Excerpt[MovedRow]


def moved_cases(comparison: Comparison | None, most: int) -> tuple[MovedCases, ...]:
    """Return the lists of all metrics whose mean is proven to have changed.

    Args:
        most: maximum number of rows in each list; 0 omits the lists.
    """
    return tuple(_lists(comparison, most)) if comparison and most else ()


def _lists(comparison: Comparison, most: int) -> Iterator[MovedCases]:
    names = {case.id: case.name for case in comparison.cases}
    for metric in comparison.metrics:
        if metric.moved:
            before, where = _compared_with(comparison)
            lower = "lower" if metric.difference < 0 else "higher"
            rows = (
                MovedRow(
                    name=names.get(case.id, case.id),
                    before=_side(case.baseline, case.baseline_failures),
                    after=_side(case.current, case.current_failures),
                    change=signed(case.current - case.baseline),
                )
                for case in metric.moved
            )
            title = f"{count(len(metric.moved), 'case')} {lower} in {metric.id} {where}"
            yield MovedCases(title, before, Excerpt.of(rows, most))


def _compared_with(comparison: Comparison) -> tuple[str, str]:
    """Return the title of the column of the other side, and where the cases moved."""
    if not comparison.base_sha:
        return "Base", "side by side with the base"
    base = comparison.base_sha[:_COMMIT]
    return base, f"side by side with {base}"


def _side(mean: float, failures: FailedOf | None) -> str:
    counted = f", failed {failures.failed} of {failures.of}" if failures else ""
    return f"{number(mean)}{counted}"


_MOST = 5


class Goal(NamedTuple):
    """A goal, with the names of the suites that have it; without a name if all suites of the run have it."""

    suites: str
    text: str


def goals(results: Results) -> tuple[Goal, ...]:
    """Return the goals in the order of their suites, each once."""
    named: dict[str, list[str]] = {}
    for suite in results.suites:
        if suite.goal and suite.goal.strip():
            named.setdefault(suite.goal.strip(), []).append(suite.name)
    return tuple(
        Goal("" if len(names) == len(results.suites) else ", ".join(names), text)
        for text, names in list(named.items())[:_MOST]
    )


_LONGEST = 80
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def moment(text: str) -> str:
    """Format an ISO 8601 timestamp; other texts stay unchanged, on one line."""
    found = _parsed(text)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else one_line(text, _LONGEST)


def age(then: str, now: str) -> str:
    """Return the time between two moments; empty if unknown."""
    first, last = _parsed(then), _parsed(now)
    if first is None or last is None or last < first:
        return ""
    seconds = (last - first).total_seconds()
    for length, name in _UNITS:
        if seconds >= length:
            return count(int(seconds // length), name)
    return "less than a minute"


def short_commit(sha: str | None) -> str:
    """Return the short form of a commit."""
    return "".join(filter(str.isalnum, (sha or "").encode("ascii", "ignore").decode()))[:12]


def _parsed(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


_MOST_NAMED = 3
_MS = 1000


@dataclass(frozen=True)
class SpendingRow:
    """One line: what, in this run, on the other side, and what explains it."""

    what: str
    here: str
    before: str = ""
    note: str = ""


def spending(results: Results) -> tuple[SpendingRow, ...]:
    """Return the lines; those without a value are left out."""
    # Of a large run, not all cases are in memory: which were slow, and what they cost, is in the HTML report.
    cases = [case for _, case in results.cases()] if view.has_all_cases(results) else []
    return (*_compared(results), *_totals(results, cases), *_cases(cases))


def _compared(results: Results) -> Iterator[SpendingRow]:
    comparison = results.comparison
    notes = list(explanations(comparison.resources)) if comparison else []
    for row in resource_rows(comparison) if comparison else ():
        about = "; ".join([row.change, *(notes if row.name.startswith("cost") else [])]).strip("; ")
        yield SpendingRow(
            row.name if row.name.endswith("answer") else f"{row.name} per answer", row.after, row.before, about
        )


def _totals(results: Results, cases: Sequence[CaseResult]) -> Iterator[SpendingRow]:
    usage = results.summary.usage
    judges = sum(score.cost_usd or 0.0 for case in cases for score in case.scores)
    if usage.cost_usd:
        split = f"judges {view.money(judges)}" if judges else ""
        yield SpendingRow("cost", view.money(usage.cost_usd), note=split)
    if usage.input_tokens or usage.output_tokens:
        yield SpendingRow("tokens", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out")
    if usage.llm_calls or usage.cached_calls:
        yield SpendingRow("calls of models", f"{usage.llm_calls:,}", note=view.from_cache(usage))
    yield SpendingRow("time", view.duration(results.run.duration_s))
    if retries := sum(turn.retries for case in cases for turn in case.turns):
        yield SpendingRow("retries", f"{retries:,}")


def _cases(cases: Sequence[CaseResult]) -> Iterator[SpendingRow]:
    slowest = _largest({case.name: _seconds(case) for case in cases})
    if slowest:
        yield SpendingRow("slowest cases", ", ".join(f"{name} {view.duration(value)}" for name, value in slowest))
    dearest = _largest({case.name: _cost(case) for case in cases})
    if dearest:
        yield SpendingRow("dearest cases", ", ".join(f"{name} {view.money(value)}" for name, value in dearest))


def _largest(values: dict[str, float]) -> list[tuple[str, float]]:
    return [item for item in nlargest(_MOST_NAMED, values.items(), key=lambda item: item[1]) if item[1] > 0]


def _seconds(case: CaseResult) -> float:
    return sum(turn.latency_ms or 0.0 for turn in case.turns) / _MS / max(1, len(case.iterations))


def _cost(case: CaseResult) -> float:
    agent = sum(turn.usage.cost_usd or 0.0 for turn in case.turns if turn.usage)
    return (agent + sum(score.cost_usd or 0.0 for score in case.scores)) / max(1, len(case.iterations))
