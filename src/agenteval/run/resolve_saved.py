"""Resolves commands on finished runs: saved results, and shards to merge."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.records import replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import redactor, shortened
from agenteval.core.text import real_path, working_directory
from agenteval.gate.integrity import with_ids_of
from agenteval.gate.run_scores import baseline_run
from agenteval.results.case import SuiteResult
from agenteval.results.history import read_history
from agenteval.results.merge import Merged, RunToMerge
from agenteval.results.model import OWN_NAME, Results
from agenteval.run.base_commit import ControlHost, base_commit
from agenteval.run.config import Config, Settings
from agenteval.run.context import (
    FoundBaseline,
    RunContext,
    Search,
    is_judged_by_base,
    is_judged_by_base_alone,
    masked,
    named,
    read_baseline,
    search_baseline,
)
from agenteval.run.git import ControlError, git
from agenteval.run.plan import RunLimits
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.configurations import (
    Configurations,
    Sources,
    files_of,
    find_configurations,
    presentation,
    read_configurations,
    templates_of,
)
from agenteval.run.resolve.control import with_config_defaults
from agenteval.run.resolve.spec import ControlSpec, Destination, Earlier, RunSpec, gate_policy
from agenteval.run.resolve.suites import load_suites
from agenteval.run.rules.accepted_file import rules_without_base, with_rules
from agenteval.run.rules.base import base_names, integrity_of, judged_by_others, presented_by_base, read_base_rules
from agenteval.suite.cases import masked_suite
from agenteval.suite.model import Suite

# Characters.
_LONGEST_NAME = 100
_PULL_REQUEST = re.compile(r"refs/pull/\d+/")


def resolve_saved(results: Results, settings: Settings, environment: Mapping[str, str]) -> RunSpec:
    """Return what the gate needs to decide on the results in a file."""
    configs = configurations_of(results, settings)
    past = read_history(settings.history)
    config = configs.of_run
    look = presentation(config, environment)
    return RunSpec(
        gate=gate_policy(settings, config),
        compare=config.compare,
        control=ControlSpec(sources=_sources(results, settings)),
        presentation=look,
        redact=redactor(configs.secrets),
        earlier=Earlier(runs=past.runs),
        warnings=past.warnings,
        output=Destination(inputs=(*templates_of(look), *_files(configs), *files_of(results.suites))),
    )


def _files(configs: Configurations) -> Iterator[Path]:
    return (path for path in configs.by_file if path is not None)


def _sources(results: Results, settings: Settings) -> Sources:
    return Sources(working_directory(), tuple(files_of(results.suites)), settings.config)


def configurations_of(results: Results, settings: Settings) -> Configurations:
    """Return the configurations of the suites of a run that are on this machine."""
    problems: list[Problem] = []
    sources = Sources(working_directory(), config=settings.config)
    configs = read_configurations(find_configurations(sources, files_of(results.suites)), problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return configs


def unchanged_suites(
    results: Sequence[SuiteResult], settings: Settings, secrets: Iterable[str]
) -> tuple[tuple[Suite, ...], Redactor]:
    """Return the suites of a run that this repository still has as they were, and what masks secrets in them."""
    loaded = _suites_here(results, settings)
    redact = redactor(frozenset(secrets).union(*(suite.secrets for suite in loaded)))
    prints = {suite.path: suite.fingerprint for suite in results}
    here = (masked_suite(suite, redact) for suite in loaded)
    return tuple(suite for suite in here if prints.get(suite.path) == suite.fingerprint), redact


def _suites_here(results: Collection[SuiteResult], settings: Settings) -> list[Suite]:
    files = files_of(results)
    if not files:
        return []
    # Problems are ignored: a suite that cannot be read has changed since the run.
    problems: list[Problem] = []
    loaded, places, files_by_path = load_suites(Sources(working_directory(), tuple(files), settings.config), problems)
    configs = read_configurations(places, problems).by_file
    found = ((suite, configs[files_by_path[suite.path]]) for suite in loaded)
    return [_bound(with_config_defaults(suite, config), config) for suite, config in found]


def _bound(suite: Suite, config: Config) -> Suite:
    try:
        return bind(suite, None, config)[0]
    except ConfigError:
        return suite


def resolve_merge(
    merged: Merged,
    settings: Settings,
    context: RunContext | None = None,
    baseline: FoundBaseline | None = None,
) -> tuple[RunSpec, Results]:
    """Return what the gate needs to decide on merged results, and these with masked secrets.

    The merged results alone decide: no case runs again. The rules are those of the base commit, as in the shards.
    """
    context = context or RunContext()
    results = merged.results
    configs = configurations_of(results, settings)
    config = configs.of_run
    suites, redact = unchanged_suites(results.suites, settings, configs.secrets)
    look = presentation(config, os.environ)
    search = _baseline(settings, context, results) if baseline is None else Search(baseline)
    past = read_history(settings.history)
    limit = config.max_answer_bytes
    if results.tool.name != OWN_NAME:
        # Other tools mask no secrets.
        results = masked(FoundBaseline(results), redact, limit).results
    if merged.fingerprints:
        results = results.model_copy(update={"baseline_runs": [baseline_run(results, merged.fingerprints)]})
    found = masked(search.found, redact, limit) if search.found else None
    then = found.results if found else None
    given = context.given()
    labelled, unnamed = named(given, [case for _, case in results.cases()], then, redact)
    integrity = integrity_of(results, then, working_directory(), redact, labelled)
    paired = replace(found, results=with_ids_of(results, found.results)) if found else None
    spec = RunSpec(
        suites=suites,
        gate=gate_policy(settings, config),
        compare=config.compare.without_runs(),
        integrity=integrity,
        earlier=Earlier(baseline=paired, runs=past.runs),
        control=ControlSpec(sources=_sources(results, settings)),
        presentation=look,
        limits=RunLimits(concurrency=1, max_answer_bytes=limit),
        redact=redact,
        output=Destination(inputs=(*templates_of(look), *_files(configs), *files_of(results.suites))),
        warnings=(
            *context.warnings,
            *configs.warnings,
            *merged.warnings,
            *search.warnings,
            *past.warnings,
            *unnamed,
        ),
    )
    if is_judged_by_base(context.control.rule.kind, results.run.ref, then):
        spec = _rules_of_base(results, then, spec, settings, context.control)
    return replace(spec, compare=replace(spec.compare, asked_by=redact(given.asked_by))), results


def _rules_of_base(
    results: Results,
    baseline: Results | None,
    own: RunSpec,
    settings: Settings,
    host: ControlHost,
) -> RunSpec:
    rule, ref, is_compared = host.rule, results.run.ref, baseline is not None
    try:
        with base_commit(working_directory(), host, baseline.run.commit if baseline else None) as found:
            base = read_base_rules(found, _sources(results, settings), baseline, agents=False)
            config, is_empty = base.files.of_run, base.is_empty
            others = judged_by_others(results, base.files.suites)
            names = base_names(results, base.files.suites)
            shown = presented_by_base(own.presentation, config, base.place)
    except AgentEvalError as error:
        return rules_without_base(own, error, rule, ref, fail_on=settings.fail_on, is_compared=is_compared)
    if is_empty:
        return own
    differences = own.integrity.differences
    if others is not None and is_compared and is_judged_by_base_alone(rule, ref):
        differences = with_rules(differences, others)
    return replace(
        own,
        gate=gate_policy(settings, config).knowing(names),
        compare=replace(config.compare.without_runs(), base_names=names),
        presentation=shown,
        integrity=replace(own.integrity, differences=differences),
    )


def _baseline(settings: Settings, context: RunContext, results: Results) -> Search:
    if isinstance(settings.baseline, Path):
        from agenteval.results.importers.base import suites_of

        return Search(read_baseline(settings.baseline, suites_of(results)))
    if context.baseline is not None:
        return search_baseline(context.baseline, [case.id for _, case in results.cases()]).accepted()
    return Search()


def check_origin(part: RunToMerge, context: RunContext) -> None:
    """Check that the results on which a workflow decides are of this commit and repository."""
    _check_evaluated_here(part, context)
    _check_repository(part, context)
    _check_commit(part, context)


def _check_evaluated_here(part: RunToMerge, context: RunContext) -> None:
    """Check that results for a proposed change are not among its own files, whose author could have written them."""
    if context.provenance is None or not is_judged_by_base_alone(context.control.rule, context.provenance.ref):
        return
    file = Path(part.file)
    for path in {file.absolute(), real_path(file)}:
        try:
            is_committed = bool(git(path.parent, "ls-files", "--", path.name))
        except ControlError:
            # It is in no repository.
            continue
        if is_committed:
            message = "this file is in the commit of the change, so no step of this run has written it"
            raise ConfigError(Problem(message, file=part.file, kind=Kind.MERGE))


def _check_commit(part: RunToMerge, context: RunContext) -> None:
    """Check that results are of the commit that a pull request or a merge group proposes, and of no other one.

    Two pull requests can have the same head, with other base branches.
    """
    rule, commit, ref = context.control.rule, part.run.commit, part.run.ref
    if context.provenance is None:
        return
    if rule.kind != "pull-request" and not is_judged_by_base_alone(rule, context.provenance.ref):
        return
    head, here = context.provenance.commit, context.provenance.ref
    there = _PULL_REQUEST.match(ref or "")
    if here is not None and there is not None and not here.startswith(there[0]):
        message = f"these results are of {shortened(ref or '', _LONGEST_NAME)}, and this run is for {here}"
        raise ConfigError(Problem(f"{message}; evaluate it first", file=part.file, kind=Kind.MERGE))
    if commit is not None and commit not in {head, rule.merge}:
        message = (
            f"these results are of commit {commit[:12]}, and this run is for {str(head)[:12]}; evaluate it first"
        )
        raise ConfigError(Problem(message, file=part.file, kind=Kind.MERGE))


def _check_repository(part: RunToMerge, context: RunContext) -> None:
    here = context.provenance.repository if context.provenance is not None else None
    there = part.run.repository
    if here is not None and there is not None and there.casefold() != here.casefold():
        message = f"these results are of repository {shortened(there, _LONGEST_NAME)}, and this run is for {here}"
        raise ConfigError(Problem(f"{message}; evaluate it first", file=part.file, kind=Kind.MERGE))
