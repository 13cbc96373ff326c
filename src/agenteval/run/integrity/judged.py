"""Lets the base commit's suites and rules decide about a run; see docs/accepting-changes.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.integrity.accepted import Accepted, accepted_of, acknowledged, in_force
from agenteval.compare.integrity.differences import case_differences, trace_differences
from agenteval.compare.integrity.integrity import Integrity
from agenteval.compare.integrity.pairs import digest_of, pair
from agenteval.compare.policy import ComparePolicy
from agenteval.core.errors import AgentEvalError
from agenteval.core.masking import add_secrets
from agenteval.results.integrity import Difference
from agenteval.results.model import RunShard
from agenteval.run.config.model import Config
from agenteval.run.integrity.accepted_file import read_accepted
from agenteval.run.integrity.applies import is_judged_by_base
from agenteval.run.integrity.baseline import beside_baseline
from agenteval.run.integrity.settings import setting_differences, suite_differences
from agenteval.run.integrity.versions import Versions, suite_of_base, suite_version
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.control import read_control_files, read_control_suites
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.spec import RunSpec, SuiteSpec
from agenteval.run.settings import Settings
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.run.integrity.base import BaseRules


@contextmanager
def judged_by_base(spec: RunSpec, settings: Settings) -> Iterator[RunSpec]:
    """Yield the specification with the cases and rules of the base commit, and the agents of the change.

    The base commit's files exist until the end of the block. Without a base commit, the run is judged by its own
    rules. What was accepted counts in both.

    Args:
        spec: the specification of the run, from the files of the change.
        settings: the caller's settings, which override those of files.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    entries = read_accepted(spec.sources.here, spec.redact)
    merged = spec.baseline.results.run.accepted if spec.baseline else ()
    accepted = in_force(entries, merged, datetime.now(UTC).date())
    spec = replace(spec, integrity=Integrity(accepted=accepted, keys=tuple(entry.key for entry in entries)))
    with ExitStack() as entered:
        if _has_base(spec, settings):
            # Imported here: most runs on a laptop have no base commit.
            from agenteval.run.integrity.base import base_rules

            # Recorded traces need no agent.
            read = read_control_files if spec.traces is None else read_control_suites
            try:
                base = entered.enter_context(base_rules(spec.sources, spec.control_host, _commit(spec), read))
            except AgentEvalError as error:
                why = f"the suites and rules of the base commit cannot be read, so this run uses its own: {error}"
                spec = replace(spec, warnings=(*spec.warnings, spec.redact(why)))
            else:
                spec = under_base(spec, settings, base)
        yield beside_baseline(spec)


def _has_base(spec: RunSpec, settings: Settings) -> bool:
    """Return whether the base commit can decide: suites that a program has built are in no commit."""
    if any(isinstance(suite, Suite) for suite in settings.suites):
        return False
    found = spec.baseline.results if spec.baseline else None
    return is_judged_by_base(spec.control_host.rule.kind, spec.provenance.ref, found)


def under_base(spec: RunSpec, settings: Settings, base: BaseRules) -> RunSpec:
    """Return the specification with the cases and rules of the base commit."""
    from agenteval.run.integrity.workflows import workflow_differences

    add_secrets(frozenset[str]().union(*(suite.secrets for suite in base.files.suites)))
    ours = {case.id: case for suite in spec.suites for case in suite.cases}
    theirs = {suite.path: suite for suite in base.files.suites}
    pairs = pair(ours.values(), (case for suite in theirs.values() for case in suite.cases))
    edits = {case_id: _accepted_edit(spec, ours[case_id]) for case_id in pairs.edited}
    versions = Versions(pairs, {case_id for case_id, entry in edits.items() if entry}, ours.keys())
    base_of = {suite.path: suite_of_base(suite, theirs, pairs) for suite in spec.suites}
    suites = {suite.path: suite_version(suite, base_of[suite.path], versions) for suite in spec.suites}
    config_of = {
        path: base.files.config_of.get(suite.path, base.files.of_run) if suite else spec.config_of.get(path)
        for path, suite in base_of.items()
    }
    iterations = _Iterations.of(spec, base)
    cases = tuple(_planned(spec, suites, versions, iterations))
    passing = (
        {case.id for _, case in spec.baseline.results.cases() if case.status == "passed"} if spec.baseline else ()
    )
    differences = [
        *case_differences(ours, pairs, passing, iterations.number),
        *(item for suite in spec.suites for item in _of_traces(spec, suite, base_of[suite.path])),
        *_suite_settings(spec, config_of),
        *setting_differences(base.files.of_run, spec.of_run),
        *workflow_differences(base.paths),
    ]
    shard = None if spec.shard is None else _with_versions(spec.shard, versions, ours)
    if shard is None or spec.shard is None:
        added = len(cases) - len(spec.cases)
    else:
        added = len(shard.cases) - len(spec.shard.cases)
    return replace(
        spec,
        suites=tuple(suites.values()),
        cases=cases,
        gate=gate_policy(settings, base.files.of_run),
        compare=_compare_policy(spec, base.files.of_run.compare),
        settings=_settings(spec, config_of, base),
        controls=_with_copies(spec, versions),
        shard=shard,
        coverage=spec.coverage.model_copy(
            update={
                "selected": spec.coverage.selected + added,
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


def _commit(spec: RunSpec) -> str | None:
    return spec.baseline.results.run.commit if spec.baseline else None


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
        default: what the configuration says.
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


def _planned(
    spec: RunSpec, suites: Mapping[str, Suite], versions: Versions, iterations: _Iterations
) -> Iterator[PlannedCase]:
    """Yield the cases to run, each with the agent of the change."""
    for item in spec.cases:
        theirs = versions.pairs.base.get(item.case.id)
        for version in versions.of(item.case):
            is_base = version.id == item.case.id and version is not item.case
            counted = theirs if theirs is not None and is_base else item.case
            yield replace(
                item,
                suite=suites[item.suite.path],
                case=version,
                iterations=iterations.number(counted),
                follow_recording=iterations.follows_recording(counted),
            )


def _compare_policy(spec: RunSpec, base: ComparePolicy) -> ComparePolicy:
    """Return the base commit's policy; recorded answers are the same in every run, so they need no confirmation."""
    policy = replace(base, recorded=spec.compare.recorded)
    all_recorded = bool(spec.compare.recorded) and len(spec.compare.recorded) == len(spec.cases)
    return policy.without_confirmation() if spec.traces or all_recorded else policy


def _settings(spec: RunSpec, config_of: Mapping[str, Config | None], base: BaseRules) -> Mapping[str, SuiteSpec]:
    """Return the settings of the suites, with the base commit's judges; equal ones are still one object."""
    made: dict[tuple[int, int], SuiteSpec] = {}
    found: dict[str, SuiteSpec] = {}
    for path, own in spec.settings.items():
        config = config_of.get(path)
        key = (id(own), id(config))
        if key not in made:
            there = {str(base.paths.there(Path(folder))): program for folder, program in own.interpreters.items()}
            interpreters = {**there, **own.interpreters}
            made[key] = replace(own, interpreters=interpreters)
            if config is not None:
                made[key] = replace(made[key], judge=config.judge, embeddings=config.embeddings)
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


def _with_copies(spec: RunSpec, versions: Versions) -> Mapping[str, AgentSpec]:
    """Return the named controls, also for the edited versions of cases."""
    found = dict(spec.controls)
    for item in spec.cases:
        if item.case.id in spec.controls:
            found |= {version.id: spec.controls[item.case.id] for version in versions.of(item.case)}
    return found
