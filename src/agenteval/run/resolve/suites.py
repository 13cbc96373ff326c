"""Reads suites with their configurations, and finds the agent of every case."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.runtime import gc_paused
from agenteval.core.secrets import is_maskable, redactor
from agenteval.core.text import did_you_mean, display_path, place_of, real_path, repository_of, working_directory
from agenteval.gate.failures import Required
from agenteval.gate.values import ComparePolicy, quarantine_warnings
from agenteval.run.config import CONFIG_FILES, Config, Settings, read_pass_env
from agenteval.run.context import RunContext
from agenteval.run.plan import counts, why_unchecked
from agenteval.run.resolve.agents import bind, discover_targets
from agenteval.run.resolve.configurations import Places, Sources, find_configurations, read_configurations
from agenteval.suite.formats.registry import conventional_places, discover, format_of, project_directory, suite_files
from agenteval.suite.formats.registry import load_suites as load_files
from agenteval.suite.model import OVERALL, AgentSpec, Suite

if TYPE_CHECKING:
    from agenteval.run.config import AddedMetric


# Names that a message lists.
_MOST_LISTED = 3


def undivided_traces(settings: Settings, traces: Collection[str]) -> list[Problem]:
    """Return the problem of a shard of recorded traces."""
    if not traces or settings.shard is None:
        return []
    return [
        Problem(
            "--shard: recorded traces cannot be divided; give each machine separate files instead", kind=Kind.OPTION
        )
    ]


def agent_beside_traces(settings: Settings) -> list[Problem]:
    """Return the problem of settings that name an agent as well as recorded traces."""
    if settings.traces is None or settings.agent is None:
        return []
    return [
        Problem("--traces: recorded traces are scored without an agent; remove --agent or --traces", kind=Kind.OPTION)
    ]


def unused_options(settings: Settings, traces: Collection[str]) -> tuple[str, ...]:
    """Return a warning for each option without effect: there are no traces, or only traces."""
    without = settings.keep_going and not traces
    recorded = settings.traces is not None and (settings.iterations or 1) > 1
    return (
        *(["--keep-going has no effect without recorded traces"] if without else []),
        *(["--iterations has no effect on recorded traces: each is one answer"] if recorded else []),
    )


def no_suite() -> Problem:
    """Return the problem of a run that has no suite."""
    message = f"no suite given, and none in this directory (looked for {conventional_places()})"
    below = suites_below(working_directory())
    if not below:
        return Problem(f"{message}; write one: agenteval init", kind=Kind.SUITE_MISSING)
    more = f" and {len(below) - _MOST_LISTED} more" if len(below) > _MOST_LISTED else ""
    found = ", ".join(below[:_MOST_LISTED]) + more
    return Problem(f"{message}; found: {found}; run one: agenteval run {below[0]}", kind=Kind.SUITE_MISSING)


def suites_below(directory: Path) -> list[str]:
    """Return the suites in the folders of a directory and in theirs, as paths from it."""
    files = [file for file in suite_files([directory / "*", directory / "*/*"], []) if file.name not in CONFIG_FILES]
    return sorted({Path(os.path.relpath(file, directory)).as_posix() for file in files})


def without_cases(suites: Sequence[Suite]) -> list[Problem]:
    """Return a problem for every suite without a case, because such a suite would always pass."""
    message = "the suite has no cases"
    return [
        Problem(message + _traces_hint(suite), file=suite.path, kind=Kind.CASE_SELECTION)
        for suite in suites
        if not suite.cases
    ]


def checked_suites(suites: Iterable[Suite], skipped: list[Problem], *, with_traces: bool = False) -> list[Suite]:
    """Return the suites in which something is checked; all of them if nothing is checked in any.

    Args:
        skipped: receives why nothing is checked in the others.
        with_traces: whether recorded traces are scored.
    """
    every = list(suites)
    idle = without_metrics(every) if with_traces else without_cases(every)
    idle += [
        why_unchecked(suite, suite.cases[0])
        for suite in every
        if suite.cases and not with_traces
        if not any(counts(metric, case) for case in suite.cases for metric in case.all_metrics)
    ]
    left_out = {problem.file for problem in idle}
    if len(left_out) == len(every):
        return every
    skipped += [replace(problem, message=f"skipped: {problem.message}") for problem in idle]
    return [suite for suite in every if suite.path not in left_out]


def _traces_hint(suite: Suite) -> str:
    if not suite.metrics:
        return ""
    file = place_of(suite.path)
    folders = [file.parent, *file.parents[1:2]] if file is not None else []
    found = next((folder / "traces" for folder in folders if (folder / "traces").is_dir()), None)
    path = "PATH" if found is None else os.path.relpath(found)
    name = suite.path if file is None else os.path.relpath(file)
    return f": it names no inputs; give recorded traces with --traces PATH: agenteval run {name} --traces {path}"


def unusable_suites(suites: Sequence[Suite]) -> list[Problem]:
    """Return a problem for every path or case id that is used twice, and for every case without a turn."""
    problems = []
    paths: set[str] = set()
    seen: set[str] = set()
    for suite in suites:
        if suite.path in paths:
            message = "several suites have this path; give each its own, or run suites of other repositories alone"
            problems.append(Problem(message, file=suite.path, kind=Kind.NOT_UNIQUE))
            continue
        paths.add(suite.path)
        for case in suite.cases:
            if not case.turns:
                message = f"case {case.id!r} has no turn; give it at least one"
                problems.append(Problem(message, file=suite.path, line=case.line, kind=Kind.NOT_UNIQUE))
            if case.id in seen:
                message = f"several cases have the id {case.id!r}; give each case of a run its own id"
                problems.append(Problem(message, file=suite.path, line=case.line, kind=Kind.NOT_UNIQUE))
            seen.add(case.id)
    return problems


def without_metrics(suites: Sequence[Suite]) -> list[Problem]:
    """Return a problem for every suite without suite-wide metrics, because such a suite cannot score traces."""
    common = "recorded traces cannot be scored with this suite"
    # Only suites with aggregated scores have metrics that are not for single cases.
    disabled = f"{common}: every evaluator is disabled; enable at least one"
    single = f"{common}: its metrics belong to single cases"
    return [
        Problem(single if suite.aggregate is None else disabled, file=suite.path, kind=Kind.GROUND_TRUTH)
        for suite in suites
        if not suite.metrics
    ]


def metrics_without_cases(
    suites: Sequence[Suite], added: Sequence[AddedMetric], traces: Collection[str] = ()
) -> tuple[str, ...]:
    """Return a warning for each added metric that scores no case of the suites.

    Args:
        traces: paths of the suites that score traces; their cases are unknown, so a pattern of cases may match one.
    """
    over_iterations = [item for item in added if traces and item.over_iterations]
    unused = "compares the iterations of a case, so it does not score recorded traces"
    unmatched = tuple(
        f"metric {item.metric.id!r} matches no case; check its `suites`, `cases` and `tags`"
        for item in added
        if not any(
            suite.path in traces or any(item.metric.is_for(case.id, case.name, case.tags) for case in suite.cases)
            for suite in suites
            if item.applies_to(suite.path, suite.name)
        )
    )
    return (*unmatched, *(f"metric {item.metric.id!r} {unused}" for item in over_iterations))


def secret_metrics(suites: Sequence[Suite], secrets: Iterable[str]) -> list[Problem]:
    """Return a problem for every metric whose id contains a secret: reports and the gate use ids as they are."""
    redact = Redactor(secret for secret in secrets if is_maskable(secret))
    message = "a secret is part of the id of a metric, which every report shows; give the metric another name"
    metrics = {metric.id: (suite, metric) for suite in suites for case in suite.cases for metric in case.all_metrics}
    metrics |= {metric.id: (suite, metric) for suite in suites for metric in suite.metrics}
    return [
        Problem(message, file=metric.where.file or suite.path, line=metric.where.line, kind=Kind.VALUE)
        for suite, metric in metrics.values()
        if redact.finds(metric.id)
    ]


def gate_warnings(
    settings: Settings, context: RunContext, suites: Sequence[Suite], policy: ComparePolicy, required: Required
) -> tuple[str, ...]:
    """Return a warning for each option of the gate without effect."""
    today = datetime.now(UTC).date()
    warnings: tuple[str, ...] = ()
    if suites:
        cases = {(case.id, case.name) for suite in suites for case in suite.cases}
        warnings += quarantine_warnings(policy.quarantine, cases, today)
        warnings += tuple(_unmatched(suites, policy, required))
    if settings.control and not (settings.baseline or context.baseline):
        warnings += ("--control has no effect without --baseline",)
    if settings.prove and (settings.shard is not None or not (settings.baseline or context.baseline)):
        warnings += ("--prove has no effect without --baseline, and in a shard",)
    return warnings


def _unmatched(suites: Sequence[Suite], policy: ComparePolicy, required: Required) -> Iterator[str]:
    names = sorted({name for suite in suites for case in suite.cases for name in (case.id, case.name)})
    for pattern in required.patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield f"`must_pass` of the gate: {pattern!r} matches no case{did_you_mean(pattern, names)}"
    every = (metric.id for suite in suites for case in suite.cases for metric in case.all_metrics)
    overall = {OVERALL} if any(suite.aggregate for suite in suites) else set()
    metrics = sorted({*every, *(metric.id for suite in suites for metric in suite.metrics), *overall})
    for name in policy.gating:
        if name not in metrics:
            yield f"`metrics` of the gate: {name!r} is no metric of the suites{did_you_mean(name, metrics)}"


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of a ``ConfigError`` in the block to a list instead of raising it."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems


def load_suites(
    sources: Sources, problems: list[Problem], given: Sequence[Suite] = (), skipped: list[Problem] | None = None
) -> tuple[list[Suite], Places, Mapping[str, Path | None]]:
    """Load every valid suite, with the variables that its configuration lists, and then the caller's suites.

    Args:
        skipped: receives why files that were found are no suites.

    Returns:
        The suites, their configurations, and that of each suite by the suite's path.
    """
    if not sources.suites and not given and not discover(sources.here):
        raise ConfigError([*problems, no_suite()])
    files = suite_files(sources.suites or (() if given else (sources.here,)), problems, skipped)
    built = {suite.path: place_of(suite.path) for suite in given}
    places = find_configurations(sources, [*files, *(file for file in built.values() if file is not None)])
    suites: list[Suite] = []
    config_of: dict[str, Path | None] = {
        path: places.of_run if file is None else places.of_suites[file] for path, file in built.items()
    }
    passed = cache(_passed)
    with gc_paused():
        for file in files:
            with confined(pass_env=passed(places.of_suites[file])):
                for suite in load_files([file], problems):
                    suites.append(suite)
                    config_of[suite.path] = places.of_suites[file]
    return [*suites, *given], places, config_of


def _passed(config: Path | None) -> tuple[str, ...]:
    try:
        return read_pass_env(config)
    except ConfigError:
        # Reading the whole configuration reports its problems.
        return ()


def bind_all(
    suites: Iterable[tuple[Suite, Config | None]], asked: AgentSpec | str | None, problems: list[Problem]
) -> tuple[list[Suite], Mapping[str, AgentSpec]]:
    """Return suites with every ``*`` expanded, and the agents of their cases by case id."""
    agents: dict[str, AgentSpec] = {}
    found: list[Suite] = []
    find = cache(discover_targets)
    asked_by: dict[int, AgentSpec | str | None] = {}
    for suite, config in suites:
        found.append(suite)
        if config is None:
            continue
        agent = asked_by.setdefault(id(config), _copied(asked))
        with collected(problems):
            found[-1], of_cases = bind(suite, agent, config, find)
            agents |= of_cases
    return found, agents


def _copied(asked: AgentSpec | str | None) -> AgentSpec | str | None:
    """Return a copy of a definition: processes of the same definition share the variables of one configuration."""
    return replace(asked) if isinstance(asked, AgentSpec) and asked.function is None else asked


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


def list_suites(paths: Sequence[Path]) -> tuple[list[ListedSuite], list[Problem]]:
    """Return the suites that were found, and the mistakes in them."""
    here = working_directory()
    problems: list[Problem] = []
    skipped: list[Problem] = []
    files = suite_files(paths or [here / "**", here], problems if paths else [], skipped)
    if problems:
        raise ConfigError(problems)
    problems += skipped
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
    loaded, places, config_of = load_suites(Sources(here, tuple(files)), problems)
    problems += places.unread
    configs = read_configurations(places, []).by_file
    # A configuration may add metrics to suites without any.
    plain = [suite for suite in loaded if not getattr(configs.get(config_of[suite.path]), "metrics", ())]
    idle = {suite.path for suite in plain} - {suite.path for suite in checked_suites(plain, problems)}
    by_path = {suite.path: suite for suite in loaded}
    redact = redactor(frozenset[str]().union(*(suite.secrets for suite in loaded)))
    shown = {file: os.path.relpath(file, here).replace(os.sep, "/") for file in files}
    ids = _ids(list(shown.values()))
    found = []
    for file, path in shown.items():
        if display_path(file) in idle:
            continue
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
    return found, problems


def _why_refused(file: Path, root: Path) -> str:
    if Path(os.path.abspath(file)).is_relative_to(root) and not real_path(file).is_relative_to(root):  # noqa: PTH100
        return "a link leads out of the repository, where the action reads nothing"
    try:
        os.path.relpath(real_path(file)).encode()
    except UnicodeEncodeError:
        return "its path is not UTF-8, so no workflow can name it; rename it"
    return ""


def _ids(paths: Sequence[str]) -> dict[str, str]:
    plain = {path: _UNSAFE.sub("-", path.rpartition(".")[0] or path).strip("-.") for path in paths}
    count = Counter(name.lower() for name in plain.values())
    return {
        path: name if name and count[name.lower()] == 1 else f"{name}-{_hash(path)}".strip("-")
        for path, name in plain.items()
    }


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
