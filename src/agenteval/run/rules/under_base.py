"""Puts the base commit's cases and rules in the place of those of the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agenteval.core.errors import Problem
from agenteval.core.files import below, read_regular
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import add_secrets
from agenteval.gate.integrity.accepted import Accepted, accepted_of, acknowledged
from agenteval.gate.integrity.differences import Pairs, case_differences, digest_of, trace_differences
from agenteval.gate.policy import BaseNames
from agenteval.gate.verdict import GatePolicy, quarantined
from agenteval.results.model import Difference, RunShard
from agenteval.run.config import Config, Settings
from agenteval.run.confirm.control import Paths
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.control import named_controls
from agenteval.run.resolve.draft import Draft
from agenteval.run.resolve.spec import RulesInForce, SuiteSpec, compare_policy, gate_policy, llm_settings
from agenteval.run.rules.base import presented_by_base, template_differences
from agenteval.run.rules.base_rules import (
    BaseAgents,
    base_interpreters,
    criteria_differences,
    setting_differences,
    suite_differences,
)
from agenteval.run.rules.versions import Versions, pair_suites, suite_version
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.run.rules.base import BaseRules


@dataclass(frozen=True)
class Chosen:
    """The cases that run, and those that are left out; the shard and the number of selected cases follow."""

    cases: tuple[PlannedCase, ...]
    left_out: tuple[PlannedCase, ...]
    shard: RunShard | None
    selected: int


def also_selected_by_base(draft: Draft, pairs: Pairs) -> Chosen:
    """Return the cases of the change, with those that are selected in the base commit.

    Otherwise a change could rename a case so that ``--filter`` leaves it out. Of a sharded run, the first shard runs
    them.

    Args:
        pairs: the cases of the change with their versions in the base commit.
    """
    added = [
        item
        for item in draft.left_out
        if (theirs := pairs.base.get(item.case.id)) is not None and draft.selection.selects(theirs)
    ]
    shard = draft.shard
    if not added:
        return Chosen(draft.cases, draft.left_out, shard, draft.coverage.selected)
    if shard is not None:
        shard = shard.model_copy(update={"cases": [*shard.cases, *(item.case.id for item in added)]})
    here = added if shard is None or shard.index == 1 else []
    order = {case.id: place for place, case in enumerate(case for suite in draft.suites for case in suite.cases)}
    left = {item.case.id for item in added}
    return Chosen(
        tuple(sorted((*draft.cases, *here), key=lambda item: order[item.case.id])),
        tuple(item for item in draft.left_out if item.case.id not in left),
        shard,
        draft.coverage.selected + len(added),
    )


_FOLDER = ".github"
_SUFFIXES = frozenset({".yml", ".yaml"})
_NAME = b"agenteval"
_LARGEST = 2**20


def workflow_differences(paths: Paths) -> Iterator[Difference]:
    """Yield the workflows and actions below ``.github/`` that name agenteval and differ from the base commit.

    Args:
        paths: the repository, and the base commit's files.
    """
    here, there = _workflows(paths.root), _workflows(paths.worktree)
    for name in sorted({*here, *there}):
        old, new = there.get(name), here.get(name)
        if old != new and _NAME in (old or b"") + (new or b""):
            before, after = ("there" if text is not None else None for text in (old, new))
            yield Difference(kind="workflow", setting=name, before=before, after=after, effect="listed")


def _workflows(root: Path) -> Mapping[str, bytes]:
    """Return the content of each file by path; one that cannot be read counts as changed and as relevant."""
    found = {}
    for folder, _, names in below(root / _FOLDER):
        for path in (folder / name for name in names if PurePosixPath(name).suffix in _SUFFIXES):
            try:
                found[path.relative_to(root).as_posix()] = read_regular(path, limit=_LARGEST)
            except (OSError, ValueError):
                found[path.relative_to(root).as_posix()] = str(path).encode() + _NAME
    return found


def rules_of_base(draft: Draft, settings: Settings, base: BaseRules, accepted: Sequence[Accepted]) -> RulesInForce:
    """Return the cases and rules of the base commit, with the agents of the change.

    Args:
        settings: the caller's settings, which override those of files.
        accepted: the changes that people accepted.
    """
    add_secrets(frozenset[str]().union(*(suite.secrets for suite in base.files.suites)))
    ours = {case.id: case for suite in draft.suites for case in suite.cases}
    pairs, base_suites = pair_suites(
        {suite.path: suite for suite in draft.suites}, {suite.path: suite for suite in base.files.suites}
    )
    edits = {case_id: _accepted_edit(accepted, ours[case_id]) for case_id in pairs.edited}
    versions = Versions(pairs, {case_id for case_id, entry in edits.items() if entry}, ours.keys())
    chosen = also_selected_by_base(draft, pairs)
    suites = {suite.path: suite_version(suite, base_suites[suite.path], versions) for suite in draft.suites}
    config_of = {
        path: base.files.config_of.get(suite.path, base.files.of_run) if suite else draft.config_of.get(path)
        for path, suite in base_suites.items()
    }
    iterations = _Iterations.of(draft, base)
    agents = BaseAgents(_by_new_id(pairs, base.files.agents), base.paths)
    cases = tuple(_planned(agents.limited(chosen.cases), suites, versions, iterations))
    names = _base_names(pairs, versions, ours)
    gate = gate_policy(settings, base.files.of_run).knowing(names)
    shown = presented_by_base(draft.presentation, base.files.of_run, base.paths)
    controls, warnings = _controls(settings, base, pairs)
    is_compared = draft.search.found is not None or draft.shard is not None
    differences = [
        *_of_cases(chosen, case_differences(ours, pairs, _passing(draft, gate), iterations.number)),
        *agents.differences(chosen.cases, is_compared=is_compared),
        *(item for suite in draft.suites for item in _of_traces(draft, suite, base_suites[suite.path])),
        *_suite_settings(draft, config_of),
        *criteria_differences(*_criteria(draft, base_suites)),
        *setting_differences(base.files.of_run, draft.of_run),
        *template_differences(draft.presentation, shown),
        *workflow_differences(base.paths),
    ]
    shard = None if chosen.shard is None else _with_versions(chosen.shard, versions, ours)
    if shard is None or chosen.shard is None:
        added = len(cases) - len(chosen.cases)
    else:
        added = len(shard.cases) - len(chosen.shard.cases)
    covered = {
        "selected": chosen.selected + added,
        "cases": None if draft.coverage.cases is None else draft.coverage.cases + added,
    }
    policy = compare_policy(base.files.of_run.compare, cases, draft.traces)
    return RulesInForce(
        suites=tuple(suites.values()),
        cases=cases,
        settings=_settings(draft, config_of, base),
        controls=controls,
        gate=gate,
        compare=replace(policy, base_names=names),
        presentation=shown,
        llm=llm_settings(settings, replace(base.files.of_run.llm, cache=draft.of_run.llm.cache)),
        shard=shard,
        coverage=draft.coverage.model_copy(update=covered),
        warnings=tuple(map(draft.redact, warnings)),
        differences=tuple(_masked(acknowledged(item, accepted), draft.redact) for item in differences),
        base_cases=frozenset((*pairs.base, *pairs.removed)),
        renamed={old: new for new, old in pairs.renamed.items()},
        base_suites=tuple(base.paths.root / suite.path for suite in base.files.suites),
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


def _passing(draft: Draft, gate: GatePolicy) -> frozenset[str]:
    """Return the ids of the cases that passed in the baseline and count."""
    results = draft.baseline
    if results is None:
        return frozenset()
    passed = {case.id for _, case in results.cases() if case.status == "passed"}
    return frozenset(passed - quarantined(results, gate))


def _of_cases(chosen: Chosen, differences: Iterable[Difference]) -> Iterator[Difference]:
    """Yield the differences of cases; what does not run is not compared."""
    left = {item.case.id for item in chosen.left_out}
    for item in differences:
        is_left_out = item.kind == "renamed" and item.case in left
        yield item.model_copy(update={"effect": "listed"}) if is_left_out else item


def _criteria(draft: Draft, base: Mapping[str, Suite | None]) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the criteria of the suites in the base commit and in the change, by path."""
    ours = {suite.path: suite.evaluation and suite.evaluation.criteria for suite in draft.suites}
    theirs = {path: suite.evaluation and suite.evaluation.criteria for path, suite in base.items() if suite}
    return {path: theirs[path] for path in ours if path in theirs}, ours


def _with_versions(shard: RunShard, versions: Versions, ours: Mapping[str, Case]) -> RunShard:
    """Return the record of a shard with the edited versions of cases, which run in the same shard."""
    ids = [version.id for case_id in shard.cases for version in versions.of(ours[case_id])]
    return shard.model_copy(update={"cases": ids})


def _accepted_edit(accepted: Sequence[Accepted], case: Case) -> Accepted | None:
    return accepted_of(accepted, "edited", case.id, digest_of(case.fingerprints))


def _masked(difference: Difference, redact: Redactor) -> Difference:
    texts = {name: getattr(difference, name) for name in ("case", "metric", "setting", "before", "after")}
    return difference.model_copy(update={name: redact(text) for name, text in texts.items() if text is not None})


@dataclass(frozen=True)
class _Iterations:
    """The number of iterations of the cases of both sides, by the identity of the case.

    Attributes:
        asked: what the caller, the case or its suite asks for; ``None`` for nothing.
    """

    asked: Mapping[int, int | None]
    default: Mapping[int, int | None]

    @classmethod
    def of(cls, draft: Draft, base: BaseRules) -> _Iterations:
        asked: dict[int, int | None] = {}
        default: dict[int, int | None] = {}
        for suites, config_of in ((draft.suites, draft.config_of), (base.files.suites, base.files.config_of)):
            for suite in suites:
                config = config_of.get(suite.path)
                for case in suite.cases:
                    asked[id(case)] = draft.coverage.iterations or case.iterations or suite.iterations
                    default[id(case)] = config.iterations if config else None
        return cls(asked, default)

    def number(self, case: Case) -> int:
        """Return how often a case of either side runs."""
        return self.asked.get(id(case)) or self.default.get(id(case)) or 1

    def follows_recording(self, case: Case) -> bool:
        """Return whether a recording decides, because nobody asks for a number."""
        return self.asked.get(id(case)) is None


def _planned(
    cases: Iterable[PlannedCase], suites: Mapping[str, Suite], versions: Versions, iterations: _Iterations
) -> Iterator[PlannedCase]:
    """Yield the cases to run, each with the agent of the change."""
    for item in cases:
        theirs = versions.pairs.base.get(item.case.id)
        for version in versions.of(item.case):
            is_base = version.id == item.case.id and item.case.id not in versions.accepted
            counted = theirs if theirs is not None and is_base else item.case
            yield replace(
                item,
                suite=suites[item.suite.path],
                case=version,
                iterations=iterations.number(counted),
                follow_recording=iterations.follows_recording(counted),
            )


def _settings(draft: Draft, config_of: Mapping[str, Config | None], base: BaseRules) -> Mapping[str, SuiteSpec]:
    """Return the settings of the suites, with those of the base commit; equal ones are still one object."""
    graders = base_interpreters(base.files.agents.values(), base.paths)
    made: dict[tuple[int, int], SuiteSpec] = {}
    found: dict[str, SuiteSpec] = {}
    for path in config_of:
        own = draft.settings[path]
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


def _of_traces(draft: Draft, ours: Suite, theirs: Suite | None) -> Iterable[Difference]:
    """Return the differences of the metrics that score recorded traces."""
    return trace_differences(ours, theirs) if draft.traces is not None and theirs is not None else ()


def _suite_settings(draft: Draft, config_of: Mapping[str, Config | None]) -> Iterable[Difference]:
    found: dict[Difference, None] = {}
    for path, base in config_of.items():
        own = draft.config_of.get(path)
        if base is not None and own is not None:
            found |= dict.fromkeys(suite_differences(base, own))
    return found
