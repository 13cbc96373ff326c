"""Lets the base commit's suites and rules decide about a run; see docs/accepting-changes.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.core.text import place_of
from agenteval.gate.integrity.accepted import acknowledged, in_force, settled
from agenteval.gate.integrity.integrity import Integrity, with_new_ids
from agenteval.gate.integrity.pairs import digest_of, digests_of, renamed
from agenteval.gate.pairing import Match, is_merged, own_cases
from agenteval.gate.run_scores import pool_case
from agenteval.results.comparison import PoolCase
from agenteval.results.model import Difference, Results
from agenteval.run.config import Settings
from agenteval.run.context import AcceptanceSource, Named, is_judged_by_base, named
from agenteval.run.integrity.accepted_file import (
    NO_RULES,
    changed_notes,
    ended_notes,
    note_missing_base,
    read_accepted,
)
from agenteval.run.resolve.control import read_control_files, read_control_suites
from agenteval.run.resolve.spec import RunSpec
from agenteval.suite.model import Case, Fingerprints, Suite

if TYPE_CHECKING:
    from agenteval.run.integrity.base import BaseRules


def pair_with_baseline(spec: RunSpec) -> RunSpec:
    """Return the specification whose baseline has the new ids of renamed cases.

    Without a base commit, it also lists the cases of the baseline that are gone or edited.
    """
    if spec.baseline is None or spec.traces is not None:
        return spec
    results = spec.baseline.results
    ours = {case.id: case for suite in spec.suites for case in suite.cases}
    then = own_cases(results)
    names = _renamed(spec, ours, then)
    found = list(_renaming(spec, names))
    if spec.integrity.base_cases is None:
        found += _lost(spec, ours, {names.get(case_id, case_id): case for case_id, case in then.items()})
    integrity = replace(spec.integrity, renamed=names, differences=(*spec.integrity.differences, *found))
    return replace(spec, integrity=integrity, baseline=replace(spec.baseline, results=with_new_ids(results, names)))


def _renamed(spec: RunSpec, ours: Mapping[str, Case], then: Mapping[str, PoolCase]) -> dict[str, str]:
    """Return the new ids of the baseline's cases, by old id."""
    if not (then.keys() - ours.keys()) or not (ours.keys() - then.keys()):
        return {}
    before = digests_of(then)
    after = {case_id: digest_of(case.fingerprints) for case_id, case in ours.items() if case_id not in then}
    of_base = {old: new for old, new in spec.integrity.renamed.items() if new not in then}
    return {**renamed(before, after, ours), **of_base}


def _renaming(spec: RunSpec, names: Mapping[str, str]) -> Iterator[Difference]:
    listed = {item.case for item in spec.integrity.differences if item.kind == "renamed"}
    for old, new in ((spec.redact(old), spec.redact(new)) for old, new in names.items()):
        if new not in listed:
            yield Difference(kind="renamed", case=new, before=old, after=new, effect="paired")


def _lost(spec: RunSpec, ours: Mapping[str, Case], then: Mapping[str, PoolCase]) -> Iterator[Difference]:
    """Yield the passing cases of the baseline that are gone, or that cannot be compared with those of the change."""
    # The base branch itself is not reproached for the change, because the merge has accepted it.
    if spec.baseline is None or is_merged(spec.provenance, spec.baseline.results.run):
        return
    ran = {suite.path for suite in spec.suites}
    are_files = all(place_of(path) is not None for path in ran)
    for suite, case in spec.baseline.results.cases():
        known = then.get(case.id)
        if case.status != "passed" or known is None:
            continue
        is_here = suite.path in ran or (are_files and place_of(suite.path) is None)
        if case.id not in ours and is_here:
            digest = digest_of(Fingerprints(known.fingerprint, known.metrics))
            lost = Difference(kind="removed", case=case.id, before=case.name, effect="unproven", fingerprint=digest)
            yield acknowledged(lost, spec.integrity.accepted)
        elif case.id in ours and not Match.of(pool_case(ours[case.id].fingerprints, {}), known).comparable:
            digest = digest_of(ours[case.id].fingerprints)
            edited = Difference(kind="edited", case=case.id, effect="unproven", fingerprint=digest)
            yield acknowledged(edited, spec.integrity.accepted)


# Who asks for the proof of an improvement, if nobody does by a label.
_OPTION = "--prove"


@contextmanager
def apply_base_rules(spec: RunSpec, settings: Settings, source: AcceptanceSource | None = None) -> Iterator[RunSpec]:
    """Yield the specification with the cases and rules of the base commit, and the agents of the change.

    The base commit's files exist until the end of the block. Without a base commit, the run is judged by its own
    rules, and is unproven if the change could have chosen them. What was accepted counts in both.

    Args:
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
            from agenteval.run.integrity.under_base import use_base_suites

            # Recorded traces need no agent.
            read = read_control_files if spec.traces is None else read_control_suites
            try:
                base = entered.enter_context(base_rules(spec.sources, spec.control_host, _baseline(spec), read))
            except AgentEvalError as error:
                # Only the merge of the shards knows the baseline.
                is_compared = spec.baseline is not None or spec.shard is not None
                rule, ref = spec.control_host.rule, spec.provenance.ref
                spec = note_missing_base(spec, error, rule, ref, settings, is_compared=is_compared)
            else:
                spec = _without_rules(spec, base) if base.is_empty else use_base_suites(spec, settings, base)
        asked_by = found.asked_by or (_OPTION if settings.prove else "")
        spec = replace(spec, compare=replace(spec.compare, asked_by=asked_by))
        yield _settled(pair_with_baseline(spec))


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


def _without_rules(spec: RunSpec, base: BaseRules) -> RunSpec:
    """Return the specification of a change that brings the first suite."""
    from agenteval.run.integrity.base import presented_by_base

    return replace(
        spec,
        presentation=presented_by_base(spec.presentation, base.files.of_run, base.paths),
        integrity=replace(spec.integrity, differences=(NO_RULES,)),
    )


def _baseline(spec: RunSpec) -> Results | None:
    return spec.baseline.results if spec.baseline else None
