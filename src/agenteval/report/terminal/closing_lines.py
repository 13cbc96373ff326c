"""The last lines: what is counted only, cost, reasons, verdict, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from agenteval.core.text import cells
from agenteval.report.terminal.cause_lines import SIGNS
from agenteval.report.terminal.commands import NextCommands
from agenteval.report.terminal.lines import BLANK, LONGEST_NAME, Line, Part, Style, line, shown
from agenteval.report.view import view
from agenteval.report.view.baseline_notes import smallest_drops
from agenteval.report.view.case_kinds import Kind
from agenteval.report.view.causes import Cause
from agenteval.report.view.certainty import certainty, requested_proof
from agenteval.report.view.comparison_rows import ResourceRow, resource_rows
from agenteval.report.view.integrity import integrity_rows
from agenteval.report.view.next_steps import only_passing_fell, open_cases
from agenteval.report.view.run_cost import base_name
from agenteval.report.view.view import GateView
from agenteval.results.model import Results
from agenteval.results.verdict import Verdict

_LABEL = 7
_MOST_LISTED = 20
_MOST_NAMED = 2
_WORTH_TELLING = 0.2
_BADGES: dict[Verdict, tuple[str, Style]] = {
    "passed": ("passed", "bold white on green"),
    "failed": ("FAILED", "bold white on red"),
    "unproven": ("UNPROVEN", "bold black on yellow"),
    "error": ("ERROR", "bold white on magenta"),
}


def closing_lines(
    results: Results, gate: GateView, causes: Sequence[Cause], commands: NextCommands, columns: int
) -> Iterator[Line]:
    """Yield the lines after what needs eyes.

    Args:
        results: the run.
        gate: the gate's decision.
        causes: all causes; those without separate lines are counted.
        commands: how to go on.
        columns: cells of a line.
    """
    certain = certainty(results, causes)
    counted = [cause for cause in causes if cause.kind not in SIGNS]
    before = [
        *_also(results, counted),
        *_cost(results),
        *_notes(results, gate),
    ]
    yield from before
    if before:
        yield BLANK
    yield from _verdict(results, gate, columns)
    yield from _sure(results, gate, certain)
    yield from _commands(results, gate, causes, commands)


def _labelled(label: str, *parts: Part | str) -> Line:
    return line((label.ljust(_LABEL), "dim"), *parts, hang=_LABEL)


def _also(results: Results, causes: Sequence[Cause]) -> Iterator[Line]:
    parts: list[Part | str] = []
    for kind, found in groupby(causes, lambda cause: cause.kind):
        parts += [" · "] if parts else []
        parts.append(_counted(kind, tuple(found), shown(base_name(results.comparison))))
    if parts:
        yield _labelled("also", *parts)


def _counted(kind: Kind, causes: Sequence[Cause], base: str) -> Part:
    cases = [case for cause in causes for case in cause.cases]
    amount = len(cases)
    match kind:
        case "removed":
            return f"{amount:,} removed that passed on {base}", "yellow"
        case "gone":
            return f"{amount:,} removed that did not pass on {base}", ""
        case "new":
            return f"{amount:,} new, {'all pass' if amount > 1 else 'passes'}", ""
        case "changed":
            return f"{amount:,} with changed rules, not compared", "yellow"
        case "known":
            return f"{amount:,} failed on {base}, too{_named(causes)}", ""
        case "improved":
            return f"{amount:,} improved{_named(causes)}", "green"
        case "skipped":
            reasons = [cause.text for cause in causes if cause.example and cause.example.wrong]
            more = f", and {view.count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
            return f"{amount:,} skipped{f' ({shown(reasons[0])}{more})' if reasons else ''}", "yellow"
        case "quarantined":
            return f"{amount:,} in quarantine{_named(causes)}", ""
        case _:
            return f"{amount:,} {kind}{_named(causes)}", ""


def _named(causes: Sequence[Cause]) -> str:
    """Return the names of a few cases with their tries; empty for many."""
    cases = [case for cause in causes for case in cause.cases]
    if len(cases) > _MOST_NAMED:
        return ""
    texts = (
        f"{shown(case.name, LONGEST_NAME)}{f' {case.before} → {case.now}' if case.before and case.now else ''}"
        for case in cases
    )
    return f" ({', '.join(texts)})"


def _cost(results: Results) -> Iterator[Line]:
    """Yield what changed much in each answer, and what the cache saved."""
    comparison = results.comparison
    changes = {resource.name: resource.change for resource in comparison.resources} if comparison else {}
    rows = resource_rows(comparison) if comparison else ()
    if any(abs(change or 0.0) >= _WORTH_TELLING for change in changes.values()) or any(row.exceeded for row in rows):
        parts: list[Part | str] = []
        for row in sorted(rows, key=lambda row: row.name):
            parts += ["  "] if parts else []
            parts += [
                _amount(row),
                (row.change, "yellow"),
                (f" ({row.allowed} allowed)" if row.exceeded else "", "red"),
            ]
        limits = "" if any(row.allowed for row in rows) else "   no limit is set"
        yield _labelled("cost", *parts, (limits, "dim"))
    if cached := view.from_cache(results.summary.usage):
        yield _labelled("cache", (shown(cached), "dim"))


def _amount(row: ResourceRow) -> str:
    match row.name:
        case "cost per answer":
            return f"{row.after} an answer "
        case "tokens per answer":
            return f"tokens {row.after} "
    return f"time {row.after} "


def _notes(results: Results, gate: GateView) -> Iterator[Line]:
    """Yield what differs from the base, warnings, and what closes the gate unless the verdict states it."""
    yield from _listed("differs from the base: ", [str(row) for row in integrity_rows(results.run)], "yellow")
    yield from _listed("warning: ", [*gate.warnings, *view.metric_errors(results)], "yellow")
    yield from _listed("why".ljust(_LABEL), [str(condition) for condition in gate.unmet], "")


def _listed(label: str, texts: Sequence[str], style: Style) -> Iterator[Line]:
    for text in texts[:_MOST_LISTED]:
        yield line((label, style or "dim"), (shown(text), style), hang=_LABEL)
    if len(texts) > _MOST_LISTED:
        yield line((f"{label}… and {len(texts) - _MOST_LISTED:,} more", style), hang=_LABEL)


def _verdict(results: Results, gate: GateView, columns: int) -> Iterator[Line]:
    word, style = _BADGES[gate.verdict]
    headline = shown(view.headline(results, gate))
    told = "" if headline == gate.verdict else headline
    counts, usage = view.counts(results), results.summary.usage
    passed = f"{counts.passed:,} of {counts.cases:,}"
    is_told = any(f"{passed} {noun} pass" in told for noun in ("case", "cases"))
    figures = [] if is_told else [f"{passed} pass"]
    figures += [view.money(usage.cost_usd)] if usage.cost_usd else []
    figures.append(view.duration(results.run.duration_s))
    totals: Part = (" · ".join(figures), "dim")
    first = line((word, style), "  ", (told, "bold"))
    if not told:
        yield line((word, style), "  ", totals)
    elif cells.width(first.text) + len("   ") + cells.width(totals[0]) <= columns:
        yield line(*first.parts, "   ", totals)
    else:
        yield first
        yield line(totals, indent=2)


def _sure(results: Results, gate: GateView, certain: Sequence[str]) -> Iterator[Line]:
    """Yield how sure the gate is of what it found, or which drop it would have found."""
    drops = smallest_drops(results.comparison) if results.comparison and gate.passed else ""
    for sentence in certain[:1] or ((drops,) if drops else ()):
        yield _labelled("sure?", shown(sentence))
    for sentence in requested_proof(results):
        yield _labelled("proof", shown(sentence))


def _commands(results: Results, gate: GateView, causes: Sequence[Cause], commands: NextCommands) -> Iterator[Line]:
    wrong = open_cases(results)
    again, only = commands.again, f"only {'this' if wrong == 1 else 'these'} {view.count(wrong, 'case')}"
    if only_passing_fell(results, causes):
        again, only, wrong = again.removesuffix(" --failed"), "all cases: the mean fell over cases that pass", 1
    offered = [
        ("again", again if wrong and not gate.passed else "", only),
        ("look", commands.look, shown(commands.page)),
    ]
    room = max(len(command) for _, command, _ in offered)
    for label, command, note in offered:
        if command:
            yield _labelled(
                label, (shown(command), "bright_blue"), (f"{'': <{room - len(command) + 2}}{note}", "dim")
            )
