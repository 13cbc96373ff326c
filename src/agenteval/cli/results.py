"""The text and JSON of ``agenteval explain-gate``, and the report in the browser."""

from __future__ import annotations

import contextlib
import json
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.escape import terminal
from agenteval.results.store import RESULTS_FILE

if TYPE_CHECKING:
    from agenteval.compare.regression.capability import Improvement, Power
    from agenteval.compare.regression.simulated import Simulated
    from agenteval.run.dry_run import Explanation


_MOST_METRICS = 10


_WORDS = {"iterations": "iterations per case", "cases": "cases", "runs": "runs of the base branch"}


def explanation_as_json(explanation: Explanation) -> str:
    """Return an explanation as JSON; drops and rates are 0..1."""
    return json.dumps(asdict(explanation), indent=2, ensure_ascii=False)


def explanation_as_text(explanation: Explanation) -> str:
    """Return an explanation as plain sentences for one screen."""
    return terminal("\n".join(_lines(explanation)), multiline=True)


def _lines(explanation: Explanation) -> Iterator[str]:
    power = explanation.power
    runs = _number(power.pool_runs, "run")
    yield f"The pool: {runs} of the base branch, {_number(power.cases, 'case')}, {power.run_calls:,} calls per run."
    yield ""
    yield "A pull request without a change"
    if power.repeats:
        yield "  blocked by mistake: 0 %, at no cost, as long as nothing varies (benchmarks/gate, table D)"
    else:
        yield from (f"  {line}" for line in _clean(explanation, power.simulated))
    most = f"at most {power.most_runs:g} further runs, and {power.most_case_calls:,} calls for single cases"
    yield f"  {most}{_money(explanation, power.most_runs * power.run_calls + power.most_case_calls)}"
    yield ""
    yield "What is found with a probability of 80 %"
    yield from (f"  {line}" for line in _drops(power))
    if power.case_calls is None:
        why = "its metrics have no threshold, or iterations of a run resemble each other"
        yield f"  a case that falls from 1 to 0: not provable by itself, because {why}"
    else:
        proof = f"proven by {power.case_calls} calls, half of them on each side"
        yield f"  a case that falls from 1 to 0: {proof}{_money(explanation, power.case_calls)}"
    if power.improvements:
        yield ""
        yield from _advice(power)
    if explanation.notes:
        yield ""
        yield from (f"note: {note}" for note in explanation.notes)


def _clean(explanation: Explanation, simulated: Simulated | None) -> Iterator[str]:
    if simulated is None:
        yield "false alarms and costs: unknown, because settings like these were not simulated"
        return
    calm, drift, step = (f"{100 * rate:.1f} %" for rate in simulated.false_alarms)
    yield f"blocked by mistake: {calm}; {drift} with drift between days, {step} after a provider became worse"
    calm_runs, drift_runs, step_runs = simulated.extra_runs
    calls = calm_runs * explanation.power.run_calls
    cost = f"{calm_runs:g} further runs on average, {calls:,.0f} calls{_money(explanation, calls)}"
    yield f"cost: {cost}; {drift_runs:g} runs with drift, {step_runs:g} after such a change"
    size = f"{_number(simulated.cases, 'case')}, {_number(simulated.iterations, 'iteration')}"
    yield f"simulated with {size} and {_number(simulated.runs, 'run')} ({simulated.source}), the most similar suite"


def _drops(power: Power) -> Iterator[str]:
    if power.repeats:
        yield "nothing varies between the runs: each change is repeated on both sides, and is proven if it repeats"
        return
    if power.blind is not None:
        # Imported here: it needs NumPy.
        from agenteval.compare.blind import too_few

        yield f"no drop of a mean: {too_few(power.blind)}"
        return
    drops = sorted(power.detectable.items(), key=lambda item: -(item[1] or 0.0))
    for metric, drop in drops[:_MOST_METRICS]:
        if drop is not None:
            yield f"{metric}: its mean falls by {_points(drop)} or more"
        elif power.pool_runs < 2:
            yield f"{metric}: unknown until the base branch has two runs"
        else:
            yield f"{metric}: unknown, because its scores did not vary"
    if len(drops) > _MOST_METRICS:
        yield f"… {_number(len(drops) - _MOST_METRICS, 'other metric')} with smaller drops; --json lists all"


def _advice(power: Power) -> Iterator[str]:
    metric = max(power.improvements[0].detectable, key=lambda name: power.detectable[name] or 0.0)
    yield f"What would find smaller drops of {metric}"
    yield from (f"  {_more(way, metric)}" for way in power.improvements)


def _more(way: Improvement, metric: str) -> str:
    return f"{way.then:,} instead of {way.now:,} {_WORDS[way.what]}: {_points(way.detectable[metric])}"


def _points(drop: float) -> str:
    return f"{100 * drop:.1f} points"


def _money(explanation: Explanation, calls: float) -> str:
    if explanation.cost_per_call is None:
        return ""
    return f" (${calls * explanation.cost_per_call:,.2f})"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_REPORT = "report.html"


# A browser is shown on one of these, or is the one that the user names.
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def report_page(path: Path) -> Path:
    """Return the page that a path names.

    Raises:
        ConfigError: it does not exist, or cannot be read.
    """
    try:
        return _page(path)
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(path), kind=Kind.RESULTS)) from None


def _page(path: Path) -> Path:
    page = path / _REPORT if path.is_dir() else path
    if page.is_file() and page.suffix == ".html":
        return page
    if page == path and path.exists():
        raise ConfigError(Problem("this is not a page; name a report directory", file=str(path), kind=Kind.RESULTS))
    if page.with_name(RESULTS_FILE).is_file():
        raise ConfigError(
            Problem(f"no such page; write it with: agenteval report {path}", file=str(page), kind=Kind.RESULTS)
        )
    raise ConfigError(Problem("no such page; a run writes it: agenteval run", file=str(page), kind=Kind.RESULTS))


def show(page: Path, environment: Mapping[str, str]) -> None:
    """Open a page in the browser, if there is one that has a window."""
    if _has_display(environment):
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(page.resolve().as_uri())


def _has_display(environment: Mapping[str, str]) -> bool:
    """Return whether a browser can show a window; one in the terminal would take the place of the output."""
    own_windows = sys.platform in {"darwin", "win32"} and "SSH_CONNECTION" not in environment
    return own_windows or any(environment.get(name) for name in _DISPLAYS)
