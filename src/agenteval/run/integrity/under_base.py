"""Puts the base commit's cases and rules in the place of those of the change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agenteval.core.errors import Problem
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import add_secrets
from agenteval.gate.integrity.accepted import Accepted, accepted_of, acknowledged
from agenteval.gate.integrity.differences import case_differences, trace_differences
from agenteval.gate.integrity.pairs import Pairs, digest_of, pair
from agenteval.gate.policy import BaseNames, ComparePolicy
from agenteval.gate.verdict import GatePolicy, quarantined
from agenteval.results.model import Difference, RunShard
from agenteval.run.config import Config, Settings
from agenteval.run.confirm.control import Paths
from agenteval.run.integrity.base import presented_by_base, template_differences
from agenteval.run.integrity.base_rules import (
    BaseAgents,
    base_interpreters,
    criteria_differences,
    setting_differences,
    suite_differences,
)
from agenteval.run.integrity.versions import Homes, Versions, suites_of_moved_cases
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.control import named_controls
from agenteval.run.resolve.run import gate_policy, llm_settings
from agenteval.run.resolve.spec import RunSpec, SuiteSpec
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.run.integrity.base import BaseRules


def also_selected_by_base(spec: RunSpec, pairs: Pairs) -> RunSpec:
    """Return the specification that also runs the cases that are selected in the base commit.

    Otherwise a change could rename a case so that ``--filter`` leaves it out. Of a sharded run, the first shard runs
    them.

    Args:
        pairs: the cases of the change with their versions in the base commit.
    """
    added = [
        item
        for item in spec.left_out
        if (theirs := pairs.base.get(item.case.id)) is not None and spec.selection.selects(theirs)
    ]
    if not added:
        return spec
    shard = spec.shard
    if shard is not None:
        shard = shard.model_copy(update={"cases": [*shard.cases, *(item.case.id for item in added)]})
    here = added if shard is None or shard.index == 1 else []
    order = {case.id: place for place, case in enumerate(case for suite in spec.suites for case in suite.cases)}
    chosen = sorted((*spec.cases, *here), key=lambda item: order[item.case.id])
    left = {item.case.id for item in added}
    return replace(
        spec,
        cases=tuple(chosen),
        left_out=tuple(item for item in spec.left_out if item.case.id not in left),
        shard=shard,
        coverage=spec.coverage.model_copy(update={"selected": spec.coverage.selected + len(added)}),
    )


_FOLDER = Path(".github", "workflows")
_SUFFIXES = frozenset({".yml", ".yaml"})
_ACTIONS = ("action.yml", "action.yaml")
_NAME = b"agenteval"
_LARGEST = 2**20
# A workflow or an action of the same repository.
_USES = re.compile(rb"""\buses["']?\s*:\s*["']?\./([^\s"'@,}#]+)""")

# Content by path; a file that cannot be read has its path as content, so that it counts as changed and as relevant.
_Files = Mapping[str, bytes]


def workflow_differences(paths: Paths) -> Iterator[Difference]:
    """Yield the files that differ from the base commit and are part of a workflow that starts agenteval.

    These are the workflow, and the workflows and actions of the repository that it uses.

    Args:
        paths: the repository, and the base commit's files.
    """
    here, there = _read(paths.root), _read(paths.worktree)
    for name in sorted(_evaluating(here) | _evaluating(there)):
        old, new = there.get(name), here.get(name)
        if old != new:
            before, after = ("there" if text is not None else None for text in (old, new))
            yield Difference(kind="workflow", setting=name, before=before, after=after, effect="listed")


def _evaluating(files: _Files) -> set[str]:
    """Return the files of the workflows that name agenteval, or use something that does."""
    found: set[str] = set()
    for name in (name for name in files if PurePosixPath(name).parent == PurePosixPath(_FOLDER.as_posix())):
        used = _used(name, files)
        if any(_NAME in files[part] for part in used):
            found |= used
    return found


def _used(name: str, files: _Files) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        part = waiting.pop()
        if part in files and part not in found:
            found.add(part)
            waiting += _names_in(files[part])
    return found


def _names_in(text: bytes) -> Iterator[str]:
    """Yield the files of the repository that a workflow or an action may use."""
    for used in _USES.findall(text):
        path = PurePosixPath(used.decode("utf-8", "replace"))
        yield from (str(path), *(str(path / name) for name in _ACTIONS))


def _read(root: Path) -> _Files:
    """Return the workflows of a repository, and the workflows and actions that they use."""
    found: dict[str, bytes] = {}
    try:
        waiting = [path.relative_to(root).as_posix() for path in (root / _FOLDER).iterdir()]
    except OSError:
        return {}
    while waiting:
        name = waiting.pop()
        if name in found or PurePosixPath(name).suffix not in _SUFFIXES or ".." in PurePosixPath(name).parts:
            continue
        content = _content(root / name)
        if content is not None:
            found[name] = content
            waiting += _names_in(content)
    return found


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, limit=_LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return str(path).encode() + _NAME


def use_base_suites(spec: RunSpec, settings: Settings, base: BaseRules) -> RunSpec:
    """Return the specification with the cases and rules of the base commit."""
    add_secrets(frozenset[str]().union(*(suite.secrets for suite in base.files.suites)))
    ours = {case.id: case for suite in spec.suites for case in suite.cases}
    theirs = {suite.path: suite for suite in base.files.suites}
    pairs = pair(ours.values(), (case for suite in theirs.values() for case in suite.cases))
    edits = {case_id: _accepted_edit(spec, ours[case_id]) for case_id in pairs.edited}
    versions = Versions(pairs, {case_id for case_id, entry in edits.items() if entry}, ours.keys())
    spec = also_selected_by_base(spec, pairs)
    found = suites_of_moved_cases({suite.path: suite for suite in spec.suites}, theirs, pairs, versions)
    config_of = {
        path: base.files.config_of.get(suite.path, base.files.of_run) if suite else spec.config_of.get(path)
        for path, suite in found.base.items()
    }
    iterations = _Iterations.of(spec, base)
    agents = BaseAgents(_by_new_id(pairs, base.files.agents), base.paths)
    cases = tuple(_planned(replace(spec, cases=agents.limited(spec.cases)), found, versions, iterations))
    names = _base_names(pairs, versions, ours)
    gate = gate_policy(settings, base.files.of_run).knowing(names)
    shown = presented_by_base(spec.presentation, base.files.of_run, base.paths)
    controls, warnings = _controls(settings, base, pairs)
    differences = [
        *_of_cases(spec, case_differences(ours, pairs, _passing(spec, gate), iterations.number)),
        *agents.differences(spec.cases, is_compared=spec.baseline is not None or spec.shard is not None),
        *(item for suite in spec.suites for item in _of_traces(spec, suite, found.base[suite.path])),
        *_suite_settings(spec, config_of),
        *criteria_differences(*_criteria(spec, found)),
        *setting_differences(base.files.of_run, spec.of_run),
        *template_differences(spec.presentation, shown),
        *workflow_differences(base.paths),
    ]
    llm = llm_settings(settings, replace(base.files.of_run.llm, cache=spec.of_run.llm.cache))
    shard = None if spec.shard is None else _with_versions(spec.shard, versions, ours)
    if shard is None or spec.shard is None:
        added = len(cases) - len(spec.cases)
    else:
        added = len(shard.cases) - len(spec.shard.cases)
    return replace(
        spec,
        suites=tuple(found.suites.values()),
        cases=cases,
        gate=gate,
        compare=replace(_compare_policy(spec, base.files.of_run.compare), base_names=names),
        presentation=shown,
        proposed={case_id: ours[case_id] for case_id in pairs.base if case_id not in pairs.edited},
        base_suites=tuple(base.paths.root / suite.path for suite in base.files.suites),
        llm=llm,
        settings=_settings(spec, found, config_of, base),
        controls=controls,
        warnings=(*spec.warnings, *map(spec.redact, warnings)),
        shard=shard,
        coverage=spec.coverage.model_copy(
            update={
                "selected": spec.coverage.selected + added,
                "max_llm_calls": llm.limits.max_calls,
                "max_cost_usd": llm.limits.max_cost_usd,
                "cases": None if spec.coverage.cases is None else spec.coverage.cases + added,
            }
        ),
        integrity=replace(
            spec.integrity,
            differences=tuple(_masked(acknowledged(item, spec.integrity.accepted), spec) for item in differences),
            base_cases=frozenset((*pairs.base, *pairs.removed)),
            renamed={old: new for new, old in pairs.renamed.items()},
        ),
    )


def _by_new_id(pairs: Pairs, of_base: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    """Return agents of the base commit by the id that each case has in the change."""
    return {new: of_base[theirs.id] for new, theirs in pairs.base.items() if theirs.id in of_base}


def _controls(settings: Settings, base: BaseRules, pairs: Pairs) -> tuple[Mapping[str, AgentSpec], Sequence[str]]:
    """Return the deployments of the base commit's agents that the caller or the base commit names, and warnings."""
    files, problems = base.files, list[Problem]()
    suites = [(suite, files.config_of[suite.path]) for suite in files.suites]
    found = named_controls(settings.control, suites, files.agents, problems)
    texts = dict.fromkeys(problem.message for problem in problems)
    return _by_new_id(pairs, found), [f"the base commit does not define the control: {text}" for text in texts]


def _base_names(pairs: Pairs, versions: Versions, ours: Mapping[str, Case]) -> BaseNames:
    """Return id and name in the base commit of each case that has others now, and of edited versions."""
    return {
        version.id: (theirs.id, theirs.name)
        for case_id, theirs in pairs.base.items()
        for version in versions.of(ours[case_id])
        if (version.id, version.name) != (theirs.id, theirs.name)
    }


def _passing(spec: RunSpec, gate: GatePolicy) -> frozenset[str]:
    """Return the ids of the cases that passed in the baseline and count."""
    if spec.baseline is None:
        return frozenset()
    results = spec.baseline.results
    passed = {case.id for _, case in results.cases() if case.status == "passed"}
    return frozenset(passed - quarantined(results, gate))


def _of_cases(spec: RunSpec, differences: Iterable[Difference]) -> Iterator[Difference]:
    """Yield the differences of cases; what does not run is not compared."""
    left = {item.case.id for item in spec.left_out}
    for item in differences:
        is_left_out = item.kind == "renamed" and item.case in left
        yield item.model_copy(update={"effect": "listed"}) if is_left_out else item


def _criteria(spec: RunSpec, found: Homes) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the criteria of the suites in the base commit and in the change, by path."""
    ours = {suite.path: suite.evaluation and suite.evaluation.criteria for suite in spec.suites}
    theirs = {path: suite.evaluation and suite.evaluation.criteria for path, suite in found.base.items() if suite}
    return {path: theirs[path] for path in ours if path in theirs}, ours


def _with_versions(shard: RunShard, versions: Versions, ours: Mapping[str, Case]) -> RunShard:
    """Return the record of a shard with the edited versions of cases, which run in the same shard."""
    ids = [version.id for case_id in shard.cases for version in versions.of(ours[case_id])]
    return shard.model_copy(update={"cases": ids})


def _accepted_edit(spec: RunSpec, case: Case) -> Accepted | None:
    return accepted_of(spec.integrity.accepted, "edited", case.id, digest_of(case.fingerprints))


def _masked(difference: Difference, spec: RunSpec) -> Difference:
    texts = {name: getattr(difference, name) for name in ("case", "metric", "setting", "before", "after")}
    return difference.model_copy(update={name: spec.redact(text) for name, text in texts.items() if text is not None})


@dataclass(frozen=True)
class _Iterations:
    """The number of iterations of the cases of both sides, by the identity of the case.

    Attributes:
        asked: what the caller, the case or its suite asks for; ``None`` for nothing.
    """

    asked: Mapping[int, int | None]
    default: Mapping[int, int | None]

    @classmethod
    def of(cls, spec: RunSpec, base: BaseRules) -> _Iterations:
        asked: dict[int, int | None] = {}
        default: dict[int, int | None] = {}
        for suites, config_of in ((spec.suites, spec.config_of), (base.files.suites, base.files.config_of)):
            for suite in suites:
                config = config_of.get(suite.path)
                for case in suite.cases:
                    asked[id(case)] = spec.coverage.iterations or case.iterations or suite.iterations
                    default[id(case)] = config.iterations if config else None
        return cls(asked, default)

    def number(self, case: Case) -> int:
        """Return how often a case of either side runs."""
        return self.asked.get(id(case)) or self.default.get(id(case)) or 1

    def follows_recording(self, case: Case) -> bool:
        """Return whether a recording decides, because nobody asks for a number."""
        return self.asked.get(id(case)) is None


def _planned(spec: RunSpec, found: Homes, versions: Versions, iterations: _Iterations) -> Iterator[PlannedCase]:
    """Yield the cases to run, each with the agent of the change."""
    for item in spec.cases:
        theirs = versions.pairs.base.get(item.case.id)
        for version in versions.of(item.case):
            is_base = version.id == item.case.id and item.case.id not in versions.accepted
            counted = theirs if theirs is not None and is_base else item.case
            yield replace(
                item,
                suite=found.suite_of(item.suite.path, item.case.id),
                case=version,
                iterations=iterations.number(counted),
                follow_recording=iterations.follows_recording(counted),
            )


def _compare_policy(spec: RunSpec, base: ComparePolicy) -> ComparePolicy:
    """Return the base commit's policy; recorded answers are the same in every run, so they need no confirmation."""
    policy = replace(base, recorded=spec.compare.recorded)
    all_recorded = bool(spec.compare.recorded) and len(spec.compare.recorded) == len(spec.cases)
    return policy.without_runs() if spec.traces or all_recorded else policy


def _settings(
    spec: RunSpec, homes: Homes, config_of: Mapping[str, Config | None], base: BaseRules
) -> Mapping[str, SuiteSpec]:
    """Return the settings of the suites, with those of the base commit; equal ones are still one object."""
    graders = base_interpreters(base.files.agents.values(), base.paths)
    containing = {case.id: suite.path for suite in spec.suites for case in suite.cases}
    now_in = {home: containing[case_id] for case_id, home in homes.moved.items()}
    made: dict[tuple[int, int], SuiteSpec] = {}
    found: dict[str, SuiteSpec] = {}
    for path in homes.suites:
        # A suite that exists in the base commit alone has the variables of a suite that has its cases now.
        own = spec.settings[path if path in spec.settings else now_in[path]]
        config = config_of.get(path)
        key = (id(own), id(config))
        if key not in made:
            made[key] = replace(own, interpreters={**own.interpreters, **graders})
            if config is not None:
                limits = config.user_code
                made[key] = replace(
                    made[key],
                    judge=config.judge,
                    embeddings=config.embeddings,
                    rules=replace(own.rules, memory_mb=limits.memory_mb, cpu_s=limits.cpu_s),
                    case_s=config.case_timeout_s,
                )
        found[path] = made[key]
    return found


def _of_traces(spec: RunSpec, ours: Suite, theirs: Suite | None) -> Iterable[Difference]:
    """Return the differences of the metrics that score recorded traces."""
    return trace_differences(ours, theirs) if spec.traces is not None and theirs is not None else ()


def _suite_settings(spec: RunSpec, config_of: Mapping[str, Config | None]) -> Iterable[Difference]:
    found: dict[Difference, None] = {}
    for path, base in config_of.items():
        own = spec.config_of.get(path)
        if base is not None and own is not None:
            found |= dict.fromkeys(suite_differences(base, own))
    return found
