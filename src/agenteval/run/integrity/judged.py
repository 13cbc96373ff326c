"""Lets the base commit's suites and rules decide about a run; see docs/accepting-changes.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agenteval.compare.integrity.accepted import in_force, settled
from agenteval.compare.integrity.integrity import Integrity
from agenteval.core.errors import AgentEvalError
from agenteval.results.model import Results
from agenteval.run.integrity.accepted_file import changed_notes, ended_notes, read_accepted
from agenteval.run.integrity.applies import is_judged_by_base
from agenteval.run.integrity.baseline import beside_baseline
from agenteval.run.integrity.given import AcceptanceSource, Named, named
from agenteval.run.integrity.without_base import NO_RULES, without_base
from agenteval.run.resolve.control import read_control_files, read_control_suites
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.settings import Settings
from agenteval.suite.model import Suite

if TYPE_CHECKING:
    from agenteval.run.integrity.base import BaseRules


# Who asks for the proof of an improvement, if nobody does by a label.
_OPTION = "--prove"


@contextmanager
def judged_by_base(spec: RunSpec, settings: Settings, source: AcceptanceSource | None = None) -> Iterator[RunSpec]:
    """Yield the specification with the cases and rules of the base commit, and the agents of the change.

    The base commit's files exist until the end of the block. Without a base commit, the run is judged by its own
    rules, and is unproven if the change could have chosen them. What was accepted counts in both.

    Args:
        spec: the specification of the run, from the files of the change.
        settings: the caller's settings, which override those of files.
        source: reads what people accepted on the CI host.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    entries = read_accepted(spec.sources.here, spec.redact)
    merged = spec.baseline.results.run.accepted if spec.baseline else ()
    today = datetime.now(UTC).date()
    accepted = in_force(entries, merged, today)
    found = _given(spec, source)
    notes = map(spec.redact, ended_notes(entries, merged, today))
    integrity = Integrity(accepted=(*accepted, *found.entries), keys=tuple(entry.key for entry in entries))
    spec = replace(spec, integrity=integrity, warnings=(*spec.warnings, *notes, *found.warnings))
    with ExitStack() as entered:
        if _has_base(spec, settings):
            # Imported here: most runs on a laptop have no base commit.
            from agenteval.run.integrity.base import base_rules
            from agenteval.run.integrity.under_base import under_base

            # Recorded traces need no agent.
            read = read_control_files if spec.traces is None else read_control_suites
            try:
                base = entered.enter_context(base_rules(spec.sources, spec.control_host, _baseline(spec), read))
            except AgentEvalError as error:
                # Only the merge of the shards knows the baseline.
                is_compared = spec.baseline is not None or spec.shard is not None
                rule, ref = spec.control_host.rule, spec.provenance.ref
                spec = without_base(spec, error, rule, ref, settings, is_compared=is_compared)
            else:
                spec = (_without_rules if base.is_empty else under_base)(spec, settings, base)
        asked_by = found.asked_by or (_OPTION if settings.prove else "")
        spec = replace(spec, compare=replace(spec.compare, asked_by=asked_by))
        yield _settled(beside_baseline(spec))


def _given(spec: RunSpec, source: AcceptanceSource | None) -> Named:
    """Return what people accepted on the CI host."""
    if source is None:
        return Named()
    cases = (case for suite in spec.suites for case in suite.cases)
    return named(source.read(), cases, _baseline(spec), spec.redact)


def _settled(spec: RunSpec) -> RunSpec:
    """Return the specification with the acceptances for the changes that were found."""
    accepted, differences = spec.integrity.accepted, spec.integrity.differences
    notes = map(spec.redact, changed_notes(accepted, differences))
    integrity = replace(spec.integrity, accepted=settled(accepted, differences))
    return replace(spec, integrity=integrity, warnings=(*spec.warnings, *notes))


def _has_base(spec: RunSpec, settings: Settings) -> bool:
    """Return whether the base commit can decide: suites that a program has built are in no commit."""
    if any(isinstance(suite, Suite) for suite in settings.suites):
        return False
    return is_judged_by_base(spec.control_host.rule.kind, spec.provenance.ref, _baseline(spec))


def _without_rules(spec: RunSpec, settings: Settings, base: BaseRules) -> RunSpec:
    """Return the specification of a change that brings the first suite."""
    from agenteval.run.integrity.templates import presented_by_base

    return replace(
        spec,
        presentation=presented_by_base(spec.presentation, settings, base.files.of_run, base.paths),
        integrity=replace(spec.integrity, differences=(NO_RULES,)),
    )


def _baseline(spec: RunSpec) -> Results | None:
    return spec.baseline.results if spec.baseline else None
