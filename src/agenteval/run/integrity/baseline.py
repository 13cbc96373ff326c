"""Pairs the cases of the change with those of its baseline, whether or not the base commit is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from agenteval.compare.integrity.accepted import acknowledged
from agenteval.compare.integrity.integrity import with_new_ids
from agenteval.compare.integrity.pairs import digest_of, digests_of, renamed
from agenteval.compare.pairing import Match, own_cases
from agenteval.compare.run_scores import pool_case
from agenteval.compare.unpaired import is_merged
from agenteval.core.paths import place_of
from agenteval.results.comparison import PoolCase
from agenteval.results.integrity import Difference
from agenteval.run.resolve.spec import RunSpec
from agenteval.suite.model import Case, Fingerprints


def beside_baseline(spec: RunSpec) -> RunSpec:
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
