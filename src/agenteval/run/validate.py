"""Commands that ask no agent: ``list``, ``validate``, ``run --dry-run`` and ``explain-gate``."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from agenteval.agents.registry import unavailable_agents
from agenteval.compare.policy import ComparePolicy, ConfirmationLimits
from agenteval.compare.regression.capability import Power, most_calls, most_calls_without_control, power_of
from agenteval.compare.sides import Sides
from agenteval.core.confine import under_rules
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.escape import terminal
from agenteval.core.secrets import redactor
from agenteval.core.text import display_path, real_path, repository_of, working_directory
from agenteval.report.view.view import count
from agenteval.results.model import Results
from agenteval.run.baseline import check_baseline
from agenteval.run.config import Config
from agenteval.run.execute import check
from agenteval.run.resolve.configurations import Sources
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.resolve.suites import load_suites
from agenteval.run.settings import Settings
from agenteval.run.setup import users_code
from agenteval.run.staged import staged
from agenteval.suite.agents import REPLAY
from agenteval.suite.formats.registry import conventional_places, format_of, project_directory, suite_files
from agenteval.suite.model import AgentSpec, Suite


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What the gate can do with a pool.

    Attributes:
        cost_per_call: cost of one iteration of a case in US dollars, judges included; ``None`` if unknown.
        notes: what was left out, and settings for which the figures do not hold.
    """

    power: Power
    cost_per_call: float | None
    notes: tuple[str, ...]


def explain_file(path: Path, settings: Settings) -> Explanation:
    """Return what the gate can do with the pool of a results file, which contains the run itself.

    Raises:
        ConfigError: the file cannot be read, cannot be a baseline, or has no gating metric with a score; or a
            configuration is not valid.
    """
    from agenteval.results.importers.detect import read_run

    results, notes = read_run(path)
    check_baseline(results, path)
    policy = resolve_saved(results, settings, os.environ).compare
    found = explain(results, policy, datetime.now(UTC).date(), notes)
    if not (found.power.detectable and found.power.cases):
        raise ConfigError(
            Problem("no metric that can fail the gate has a score in this run", file=str(path), kind=Kind.RESULTS)
        )
    return found


def explain(results: Results, policy: ComparePolicy, today: date, notes: Iterable[str] = ()) -> Explanation:
    """Return what the gate can do with the pool of a run, and the run itself.

    Args:
        today: the UTC date that decides which quarantine entries have ended.
        notes: what the reader of the run left out.
    """
    cases = [case for _, case in results.cases()]
    quarantined = frozenset(case.id for case in cases if policy.quarantined(case.id, case.name, today))
    # The run belongs to its own pool, so there is no run to compare with it.
    sides = Sides(results, results, policy, quarantined)
    return Explanation(
        power=power_of(replace(sides.evidence, first={}), policy.settings),
        cost_per_call=cost_of_a_call(results),
        notes=(*notes, *_worse(results), *sides.earlier.notes, *_differences(policy)),
    )


def cost_of_a_call(results: Results) -> float | None:
    """Return what one iteration of a case has cost in US dollars, judges included; ``None`` if unknown.

    The usage of a run contains what ran again.
    """
    comparison = results.comparison
    again = comparison.cost.calls if comparison is not None and comparison.cost is not None else 0
    calls = sum(len(case.iterations) for _, case in results.cases()) + again
    cost = results.summary.usage.cost_usd
    return cost / calls if cost > 0 and calls else None


def _worse(results: Results) -> list[str]:
    """Return a note about a run that the gate would not add to a pool."""
    if results.comparison is None or results.comparison.verdict != "regressed":
        return []
    return ["this run is proven worse than its baseline; the figures are those of the worse agent"]


def _differences(policy: ComparePolicy) -> list[str]:
    """Return for which of the policy's settings the figures do not hold."""
    notes = []
    if policy.name != "statistics":
        notes.append(f"the gate decides by `policy: {policy.name}`; these figures are those of `policy: statistics`")
    elif not policy.confirms_beside_base:
        notes.append("these figures hold for `confirm: against-base`, which this configuration does not choose")
    if policy.staged:
        notes.append("these figures hold for whole first runs; `staged` saves calls and finds a little less")
    return notes


_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class ListedSuite:
    """A suite.

    Attributes:
        id: the path with hyphens for slashes, different for each suite; for names of jobs and artifacts.
        path: the path relative to the working directory, with forward slashes, as ``agenteval run`` takes it.
        name: the name of the suite; the path without one, and if the suite has a mistake.
        format: the name of the format; ``None`` if the file has none.
        cases: the number of cases as they are written; ``None`` if the suite has a mistake.
        directory: the directory of the suite's project, without the conventional folders of the format.
    """

    id: str
    path: str
    name: str
    format: str | None
    cases: int | None
    directory: str


@dataclass(frozen=True)
class SuiteList:
    """The suites that were found, and the mistakes in them."""

    suites: Sequence[ListedSuite]
    problems: Sequence[Problem]


def list_suites(paths: Sequence[Path]) -> SuiteList:
    """Find suites.

    Args:
        paths: files, directories or patterns; if empty, all directories from the working directory down are searched.

    Returns:
        The suites in the order of their paths. A suite with mistakes is listed too.

    Raises:
        ConfigError: no suite was found in the repository, or a path has none.
    """
    here = working_directory()
    problems: list[Problem] = []
    files = suite_files(paths or [here / "**", here], problems if paths else [])
    if problems:
        raise ConfigError(problems)
    if not files:
        raise ConfigError(
            Problem(
                f"there is no suite in this directory or below (looked for {conventional_places()})",
                kind=Kind.SUITE_MISSING,
            )
        )
    root = repository_of(here) or here
    refused = {file: why for file in files if (why := _why_refused(file, root))}
    problems += [Problem(why, file=str(file), kind=Kind.SUITE_MISSING) for file, why in refused.items()]
    files = sorted(real_path(file) for file in files if file not in refused)
    if not files:
        raise ConfigError(problems)
    loaded = load_suites(Sources(here, tuple(files)), problems)
    by_path = {suite.path: suite for suite in loaded.suites}
    redact = redactor(frozenset[str]().union(*(suite.secrets for suite in loaded.suites)))
    shown = {file: os.path.relpath(file, here).replace(os.sep, "/") for file in files}
    ids = _ids(list(shown.values()))
    found = []
    for file, path in shown.items():
        suite = by_path.get(display_path(file))
        listed = ListedSuite(
            id=ids[path],
            path=path,
            name=redact(suite.name) if suite and suite.name else path,
            format=suite.format if suite else format_of(file),
            cases=len(suite.cases) if suite else None,
            directory=os.path.relpath(project_directory(file), here).replace(os.sep, "/"),
        )
        found.append(listed)
    return SuiteList(found, problems)


def _why_refused(file: Path, root: Path) -> str:
    """Return why a workflow could not run a suite; empty if it can."""
    if Path(os.path.abspath(file)).is_relative_to(root) and not real_path(file).is_relative_to(root):  # noqa: PTH100
        return "a link leads out of the repository, where the action reads nothing"
    try:
        os.path.relpath(real_path(file)).encode()
    except UnicodeEncodeError:
        return "its path is not UTF-8, so no workflow can name it; rename it"
    return ""


def _ids(paths: Sequence[str]) -> dict[str, str]:
    """Return an id for each path; paths whose ids would be the same get a hash."""
    plain = {path: _UNSAFE.sub("-", path.rpartition(".")[0] or path).strip("-.") for path in paths}
    count = Counter(name.lower() for name in plain.values())
    return {
        path: name if name and count[name.lower()] == 1 else f"{name}-{_hash(path)}".strip("-")
        for path, name in plain.items()
    }


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def validate(settings: Settings) -> list[str]:
    """Check what a run with these settings would read and start; no agent, tool or model is called.

    Args:
        settings: the settings of the run; nothing is written.

    Returns:
        Lines about the files and their warnings; a package that only the agent needs is one of the warnings.

    Raises:
        ConfigError: the run would not start; the error contains the problems that the run would report.
    """
    return checked(resolve_run(settings), may_lack=True)


def checked(spec: RunSpec, *, may_lack: bool = False) -> list[str]:
    """Return the lines of `validate` about a run.

    Args:
        may_lack: a package that only the agent needs may be missing on this machine.

    Raises:
        ConfigError: the run would not start.
    """
    with users_code(spec.setup, spec.redact):
        found = check(make_plan(spec))
        if found.lacking and not may_lack:
            raise ConfigError(found.lacking)
        warnings = dict.fromkeys((*found.notices, *map(str, found.lacking), *spec.warnings, *_unavailable(spec)))
    lines = (
        *map(_configuration, spec.configs),
        *map(_suite, spec.suites),
        *(f"warning: {text}" for text in warnings),
    )
    return [terminal(spec.redact(line)) for line in lines]


def _configuration(config: Config) -> str:
    tools = f", {count(len(config.tools), 'tool')}" if config.tools else ""
    return f"{config.name}: ok, {count(len(config.agents), 'agent')}{tools}"


def _suite(suite: Suite) -> str:
    return f"{suite.path}: ok, {suite.format}, {count(len(suite.cases), 'case')}"


def _unavailable(spec: RunSpec) -> Iterator[str]:
    """Yield the problems of agents and tools that no case uses, so that they do not prevent the run."""
    used = {item.agent.where for item in spec.cases}
    for config in spec.configs:
        defined = [agent for agent in (*config.agents.values(), *config.tools.values()) if agent.where not in used]
        with under_rules(config.user_code):
            found = unavailable_agents(agent for agent in defined if not _has_traces(agent))
        yield from map(str, found)


def _has_traces(agent: AgentSpec) -> bool:
    """Return whether an agent has recorded traces, which suites without inputs score."""
    from agenteval.agents.recorded_cases import read_traces
    from agenteval.agents.recording import Trace, is_otel

    path = Path(str(agent.target))
    if agent.kind != REPLAY or is_otel(path):
        return False
    try:
        return isinstance(next(read_traces(path)), Trace)
    except ConfigError:
        return False


def dry_run(settings: Settings, runs: int = 1) -> list[str]:
    """Check what a run would read and start, and return its cost; no agent, tool or model is called.

    Args:
        settings: the settings of each run; nothing is written.

    Returns:
        Lines about the files, their warnings, the run, and what a suspected regression would cost.

    Raises:
        ConfigError: the run would not start.
    """
    spec = staged(resolve_run(settings), settings if runs == 1 else replace(settings, is_whole=True))
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec, runs))]


def _costs(spec: RunSpec, runs: int) -> Iterator[str]:
    earlier = spec.baseline.results if spec.baseline is not None else None
    iterations = [item.iterations for item in spec.cases if item.case.id not in spec.compare.recorded]
    calls, unneeded = sum(iterations), sum(item.unneeded for item in spec.cases)
    left = f"; {unneeded:,} of {calls:,} are not needed" if unneeded else ""
    several = "" if runs == 1 else f"{runs} runs of "
    yield f"run: {several}{_asked(spec)}, {_calls(runs * (calls - unneeded), earlier)}{left}"
    if earlier is None and runs == 1:
        yield "suspicion: nothing runs again, because no baseline is named"
        return
    why_nothing = _why_nothing(spec.compare) if calls else "recorded answers, which never vary"
    if why_nothing:
        yield f"suspicion: nothing runs again, because of {why_nothing}"
        return
    most = most_calls if spec.compare.confirms_beside_base else most_calls_without_control
    means, single = most(iterations, spec.compare.settings)
    costs = f"{_calls(means, earlier)} for means, {_calls(single, earlier)} for single cases"
    yield f"suspicion: at most {costs}{_limited(spec.compare.max_confirmation, calls)}"


def _asked(spec: RunSpec) -> str:
    if spec.traces is not None:
        return f"the recorded traces of {count(len(spec.traces.paths), 'path')}"
    recorded = sum(item.case.id in spec.compare.recorded for item in spec.cases)
    cases = count(len(spec.cases), "case")
    return f"{cases} ({recorded} with recorded answers)" if recorded else cases


def _why_nothing(policy: ComparePolicy) -> str:
    if policy.name != "statistics":
        return f"`policy: {policy.name}`"
    return "`confirm: off`" if policy.confirm == "off" else ""


def _calls(number: int, earlier: Results | None) -> str:
    """Return a number of calls, and their cost as far as the baseline knows it."""
    cost = cost_of_a_call(earlier) if earlier is not None else None
    text = f"{number:,} call" if number == 1 else f"{number:,} calls"
    return text if cost is None else f"{text} (${number * cost:,.2f})"


def _limited(limits: ConfirmationLimits, run_calls: int) -> str:
    """Return what ``max_confirmation`` allows; empty without a limit."""
    calls = [
        number
        for number in (limits.calls, None if limits.runs is None else limits.runs * run_calls)
        if number is not None
    ]
    allowed = [f"{min(calls):,} calls"] if calls else []
    allowed += [f"${limits.cost_usd:,.2f}"] if limits.cost_usd is not None else []
    return f"; `max_confirmation` allows {' and '.join(allowed)}" if allowed else ""
