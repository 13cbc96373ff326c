"""What was accepted, renamed and decided by the base commit, for runs that are already finished."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agenteval.compare.integrity.accepted import acknowledged, in_force
from agenteval.compare.integrity.integrity import Integrity, with_ids_of
from agenteval.core.errors import AgentEvalError
from agenteval.core.paths import working_directory
from agenteval.core.text.redact import Redactor
from agenteval.results.integrity import Difference
from agenteval.results.model import Results
from agenteval.run.context import RunContext
from agenteval.run.integrity.accepted_file import read_accepted
from agenteval.run.integrity.applies import is_judged_by_base
from agenteval.run.integrity.base import base_rules
from agenteval.run.resolve.control import read_control_suites
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.saved import files_of
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.settings import Settings


def integrity_of(now: Results, then: Results | None, here: Path, redact: Redactor) -> Integrity:
    """Return what was accepted, for the comparison of two finished runs.

    Args:
        now: the run to decide on.
        then: the earlier run; ``None`` without one.
        here: the working directory.
        redact: masks secrets.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    entries = read_accepted(here, redact)
    accepted = in_force(entries, then.run.accepted if then else (), datetime.now(UTC).date())
    passing = {case.id for _, case in then.cases() if case.status == "passed"} if then else set()
    differences = (acknowledged(_with_effect(item, passing), accepted) for item in now.run.integrity)
    return Integrity(differences=tuple(differences), accepted=accepted, keys=tuple(entry.key for entry in entries))


def _with_effect(difference: Difference, passing: Collection[str]) -> Difference:
    """Return a difference with its effect on a comparison with a baseline, which shards do not have."""
    if difference.kind != "removed" or difference.accepted_by is not None or difference.case not in passing:
        return difference
    return difference.model_copy(update={"effect": "unproven"})


def with_integrity(results: Results, integrity: Integrity) -> Results:
    """Return a run that records how it differs from the base commit, and which changes were accepted."""
    recorded = {"integrity": list(integrity.differences), "accepted": list(integrity.keys)}
    return results.model_copy(update={"run": results.run.model_copy(update=recorded)})


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
    integrity = integrity_of(results, found, here, spec.redact)
    if baseline is not None:
        baseline = replace(baseline, results=with_ids_of(results, baseline.results))
    spec = replace(spec, integrity=integrity, baseline=baseline)
    if not is_judged_by_base(context.control.rule.kind, results.run.ref, found):
        return spec
    sources = Sources(here, tuple(files_of(results.suites)), settings.config)
    try:
        commit = found.run.commit if found else None
        with base_rules(sources, context.control, commit, read_control_suites) as base:
            config = base.files.of_run
    except AgentEvalError as error:
        why = f"the rules of the base commit cannot be read, so this run uses its own: {error}"
        return replace(spec, warnings=(*spec.warnings, spec.redact(why)))
    return replace(spec, gate=gate_policy(settings, config), compare=config.compare.without_confirmation())
