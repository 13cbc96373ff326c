"""What was accepted, renamed and decided by the base commit, for runs that are already finished."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agenteval.compare.integrity.accepted import Accepted, acknowledged, in_force, settled
from agenteval.compare.integrity.integrity import Integrity, with_ids_of
from agenteval.compare.policy import BaseNames
from agenteval.core.errors import AgentEvalError
from agenteval.core.paths import working_directory
from agenteval.core.text.redact import Redactor
from agenteval.results.case import CaseResult
from agenteval.results.integrity import Difference
from agenteval.results.model import Results
from agenteval.run.context import RunContext
from agenteval.run.integrity.accepted_file import read_accepted
from agenteval.run.integrity.applies import is_judged_by_base, is_judged_by_base_alone
from agenteval.run.integrity.base import base_rules
from agenteval.run.integrity.given import Named, named
from agenteval.run.integrity.other_rules import judged_by_others
from agenteval.run.integrity.templates import presented_by_base
from agenteval.run.integrity.without_base import with_rules, without_base
from agenteval.run.resolve.control import read_control_suites
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.saved import files_of
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.settings import Settings
from agenteval.suite.model import Suite


def integrity_of(
    now: Results, then: Results | None, here: Path, redact: Redactor, given: Iterable[Accepted] = ()
) -> Integrity:
    """Return what was accepted, for the comparison of two finished runs.

    Args:
        now: the run to decide on.
        then: the earlier run; ``None`` without one.
        here: the working directory.
        redact: masks secrets.
        given: what people accepted on the CI host.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    entries = read_accepted(here, redact)
    accepted = in_force(entries, then.run.accepted if then else (), datetime.now(UTC).date())
    passing = {case.id for _, case in then.cases() if case.status == "passed"} if then else None
    every = (*accepted, *given)
    differences = tuple(acknowledged(_with_effect(item, passing), every) for item in now.run.integrity)
    keys = tuple(entry.key for entry in entries)
    return Integrity(differences=differences, accepted=settled(every, differences), keys=keys)


def _with_effect(difference: Difference, passing: Collection[str] | None) -> Difference:
    """Return a difference with its effect on a comparison with a baseline, which shards do not have.

    Args:
        difference: the difference.
        passing: ids of the cases that passed in the baseline; ``None`` without one.
    """
    if difference.kind == "rules" and difference.effect == "unproven" and passing is None:
        return difference.model_copy(update={"effect": "absolute"})
    if difference.kind != "removed" or difference.accepted_by is not None or difference.case not in (passing or ()):
        return difference
    return difference.model_copy(update={"effect": "unproven"})


def with_integrity(results: Results, integrity: Integrity) -> Results:
    """Return a run that records how it differs from the base commit, and which changes were accepted."""
    recorded = {"integrity": list(integrity.differences), "accepted": list(integrity.keys)}
    return results.model_copy(update={"run": results.run.model_copy(update=recorded)})


def _cases(results: Results) -> list[CaseResult]:
    return [case for _, case in results.cases()]


def merged_by_base(spec: GateSpec, settings: Settings, context: RunContext, results: Results) -> GateSpec:
    """Return the specification of a merge with the rules of the base commit, as the shards had them.

    Args:
        spec: the specification, from the files of the change.
        settings: the caller's settings, which override those of files.
        context: additions of the environment.
        results: the merged run.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    here = working_directory()
    baseline = spec.baseline
    found = baseline.results if baseline else None
    source = context.acceptances
    given = Named() if source is None else named(source.read(), _cases(results), found, spec.redact)
    integrity = integrity_of(results, found, here, spec.redact, given.entries)
    spec = replace(spec, warnings=(*spec.warnings, *given.warnings))
    if baseline is not None:
        baseline = replace(baseline, results=with_ids_of(results, baseline.results))
    asked = replace(spec.compare, asked_by=given.asked_by)
    spec = replace(spec, integrity=integrity, baseline=baseline, compare=asked)
    if not is_judged_by_base(context.control.rule.kind, results.run.ref, found):
        return spec
    sources = Sources(here, tuple(files_of(results.suites)), settings.config)
    try:
        with base_rules(sources, context.control, found, read_control_suites) as base:
            config, is_empty = base.files.of_run, base.is_empty
            others = judged_by_others(results, base.files.suites)
            names = _base_names(results, base.files.suites)
            shown = presented_by_base(spec.presentation, settings, config, base.paths)
    except AgentEvalError as error:
        rule, ref = context.control.rule, results.run.ref
        return without_base(spec, error, rule, ref, settings, is_compared=found is not None)
    if is_empty:
        return spec
    if others is not None and found is not None and is_judged_by_base_alone(context.control.rule, results.run.ref):
        spec = replace(spec, integrity=with_rules(spec.integrity, others))
    return replace(
        spec,
        gate=gate_policy(settings, config).knowing(names),
        compare=replace(config.compare.without_confirmation(), base_names=names, asked_by=given.asked_by),
        presentation=shown,
    )


def _base_names(results: Results, suites: Iterable[Suite]) -> BaseNames:
    """Return id and name in the base commit of the cases of a run that the change renamed."""
    then = {case.id: case.name for suite in suites for case in suite.cases}
    old_id = {item.after: item.before for item in results.run.integrity if item.kind == "renamed"}
    found: dict[str, tuple[str, str]] = {}
    for _, case in results.cases():
        before = old_id.get(case.id) or case.id
        if before in then and (before, then[before]) != (case.id, case.name):
            found[case.id] = (before, then[before])
    return found
