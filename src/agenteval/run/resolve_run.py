"""Resolves a run: settings, files, the base commit, what was accepted and earlier attempts become one specification.

Accepting changes is described in docs/gate.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import replace
from agenteval.core.redact import Redactor
from agenteval.core.text import place_of
from agenteval.gate.integrity import (
    Integrity,
    acknowledged,
    digest_of,
    digests_of,
    in_force,
    renamed,
    settled,
    with_new_ids,
)
from agenteval.gate.pairing import Match, continues_branch, is_merged, own_cases
from agenteval.gate.run_scores import baseline_case
from agenteval.results.comparison import BaselineCase
from agenteval.results.model import Difference, Results
from agenteval.run.base_commit import BaseCommit, base_commit, copied_commit
from agenteval.run.config import Settings
from agenteval.run.context import Attempt, RunContext, is_judged_by_base, named
from agenteval.run.git import ControlError, checked_commit
from agenteval.run.resolve.draft import Draft, read_draft
from agenteval.run.resolve.spec import ControlSpec, RunSpec
from agenteval.run.rules.accepted_file import (
    NO_RULES,
    changed_notes,
    ended_notes,
    read_accepted,
    rules_without_base,
)
from agenteval.suite.model import Case, Fingerprints, Suite

# Who asks for the proof of an improvement, if nobody does by a label.
_OPTION = "--prove"


def resolve_files(settings: Settings, context: RunContext | None = None) -> RunSpec:
    """Return a run as its own files describe it, for commands that compare nothing."""
    return read_draft(settings, context or RunContext()).spec


@contextmanager
def resolve(settings: Settings, context: RunContext | None = None) -> Iterator[RunSpec]:
    """Yield everything about a run: its cases and rules are those of the base commit, its agents those of the change.

    The base commit's files exist until the end of the block. Without a base commit, the run is judged by its own
    rules, and is unproven if the change could have chosen them. What was accepted counts in both.
    """
    context = context or RunContext()
    draft = read_draft(settings, context)
    spec, baseline = draft.spec, draft.baseline
    entries = read_accepted(spec.control.sources.here, spec.redact)
    merged = baseline.run.accepted if baseline is not None else ()
    today = datetime.now(UTC).date()
    given = context.given()
    labelled, unnamed = named(given, (case for suite in spec.suites for case in suite.cases), baseline, spec.redact)
    accepted = (*in_force(entries, merged, today), *labelled)
    notes = [*map(spec.redact, ended_notes(entries, merged, today)), *unnamed]
    with ExitStack() as entered:
        base: BaseCommit | AgentEvalError | None = None
        if _has_base(draft, settings, context):
            # Imported here: most runs on a laptop have no base commit.
            from agenteval.run.rules.base import presented_by_base, read_base_rules
            from agenteval.run.rules.under_base import rules_of_base

            base = _base_commit(draft, context, entered)
            try:
                # Recorded traces need no agent.
                theirs = read_base_rules(base, spec.control.sources, baseline, agents=spec.traces is None)
            except AgentEvalError as error:
                # Only the merge of the shards is compared.
                is_compared = baseline is not None or spec.shard is not None
                rule, ref = context.control.rule, spec.provenance.ref
                spec = rules_without_base(spec, error, rule, ref, fail_on=settings.fail_on, is_compared=is_compared)
            else:
                if theirs.is_empty:
                    # The change brings the first suite.
                    shown = presented_by_base(spec.presentation, theirs.files.of_run, theirs.place)
                    spec = replace(spec, presentation=shown, integrity=Integrity(differences=(NO_RULES,)))
                else:
                    spec = rules_of_base(draft, settings, theirs, accepted)
        asked_by = spec.redact(given.asked_by) or (_OPTION if settings.prove else "")
        first = "whole" if settings.is_whole else spec.compare.first
        keys = tuple(entry.key for entry in entries)
        spec = replace(
            spec,
            compare=replace(spec.compare, asked_by=asked_by, first=first),
            integrity=replace(spec.integrity, accepted=accepted, keys=keys),
        )
        spec = _paired_with_baseline(spec)
        notes += map(spec.redact, changed_notes(accepted, spec.integrity.differences))
        integrity = replace(spec.integrity, accepted=settled(accepted, spec.integrity.differences))
        spec = replace(spec, integrity=integrity)
        attempt = _attempt(spec, draft.of_run.name, base, context)
        yield replace(
            spec,
            earlier=replace(spec.earlier, attempt=attempt),
            control=_control(spec, draft, base, context, entered),
            warnings=(*spec.warnings, *notes, *(attempt.warnings if attempt is not None else ())),
        )


def _base_commit(draft: Draft, context: RunContext, entered: ExitStack) -> BaseCommit | AgentEvalError:
    commit = draft.baseline.run.commit if draft.baseline is not None else None
    try:
        return entered.enter_context(base_commit(draft.spec.control.sources.here, context.control, commit))
    except AgentEvalError as error:
        return error


def _control(
    spec: RunSpec, draft: Draft, base: BaseCommit | AgentEvalError | None, context: RunContext, entered: ExitStack
) -> ControlSpec:
    control = replace(spec.control, base=base, branch=context.control.rule.branch)
    if not spec.compare.can_run or (spec.baseline is None and spec.earlier.missing is None):
        return control
    if base is None and any(item.case.id not in control.agents for item in spec.cases):
        base = _base_commit(draft, context, entered)
    if spec.baseline is None or not isinstance(base, BaseCommit):
        return replace(control, base=base)
    earlier = {entry.commit for entry in spec.baseline.results.baseline_runs if entry.commit}
    unrelated = frozenset(commit for commit in earlier if base.clone.is_ancestor(commit, base.commit) is False)
    start = _start(spec, spec.baseline.results, base, context, entered)
    return replace(control, base=base, unrelated=unrelated, start=start)


def _start(
    spec: RunSpec, baseline: Results, base: BaseCommit, context: RunContext, entered: ExitStack
) -> BaseCommit | AgentEvalError | None:
    if spec.shard is not None or not continues_branch(spec.provenance, baseline.run):
        return None
    newest = max(baseline.baseline_runs, key=lambda entry: entry.created_at, default=None)
    commit = newest.start if newest is not None else None
    if commit is None or commit == spec.provenance.commit:
        return None
    try:
        if base.clone.is_ancestor(checked_commit(commit), base.clone.head.commit) is False:
            return ControlError(f"commit {commit[:12]} is not in the history of the branch any more")
        return entered.enter_context(copied_commit(base.clone, context.control.remote, commit))
    except AgentEvalError as error:
        return error


def _attempt(
    spec: RunSpec, config: str, base: BaseCommit | AgentEvalError | None, context: RunContext
) -> Attempt | None:
    if context.attempts is None or spec.shard is not None:
        return None
    # Imported here: most runs are for no pull request.
    from agenteval.run.attempt import begin_attempt

    return begin_attempt(spec, config, base, context.attempts())


def _has_base(draft: Draft, settings: Settings, context: RunContext) -> bool:
    """Return whether the base commit can decide: suites that a program has built are in no commit."""
    if any(isinstance(suite, Suite) for suite in settings.suites):
        return False
    return is_judged_by_base(context.control.rule.kind, draft.spec.provenance.ref, draft.baseline)


def _paired_with_baseline(spec: RunSpec) -> RunSpec:
    """Return a run whose baseline has the new ids of renamed cases, with the differences of its cases.

    Without a base commit, these contain the cases of the baseline that are gone or edited.
    """
    baseline, integrity = spec.baseline, spec.integrity
    if baseline is None or spec.traces is not None:
        return spec
    ours = {case.id: case for suite in spec.suites for case in suite.cases}
    then = own_cases(baseline.results)
    names = _renamed(integrity, ours, then)
    found = list(_renaming(spec.redact, integrity, names))
    if integrity.base_cases is None:
        before = {names.get(case_id, case_id): case for case_id, case in then.items()}
        found += _lost(spec, baseline.results, before)
    renamed_baseline = replace(baseline, results=with_new_ids(baseline.results, names))
    return replace(
        spec,
        earlier=replace(spec.earlier, baseline=renamed_baseline),
        integrity=replace(integrity, renamed=names, differences=(*integrity.differences, *found)),
    )


def _renamed(integrity: Integrity, ours: Mapping[str, Case], then: Mapping[str, BaselineCase]) -> dict[str, str]:
    if not (then.keys() - ours.keys()) or not (ours.keys() - then.keys()):
        return {}
    # The pairs of the cases that the base commit has are known.
    decided = integrity.base_cases or frozenset()
    before = digests_of({case_id: case for case_id, case in then.items() if case_id not in decided})
    after = {case_id: digest_of(case.fingerprints) for case_id, case in ours.items() if case_id not in then}
    of_base = {old: new for old, new in integrity.renamed.items() if new not in then}
    return {**renamed(before, after, ours), **of_base}


def _renaming(redact: Redactor, integrity: Integrity, names: Mapping[str, str]) -> Iterator[Difference]:
    listed = {item.case for item in integrity.differences if item.kind == "renamed"}
    for old, new in ((redact(old), redact(new)) for old, new in names.items()):
        if new not in listed:
            yield Difference(kind="renamed", case=new, before=old, after=new, effect="paired")


def _lost(spec: RunSpec, baseline: Results, then: Mapping[str, BaselineCase]) -> Iterator[Difference]:
    # The base branch itself is not reproached for the change, because the merge has accepted it.
    if is_merged(spec.provenance, baseline.run):
        return
    suites, integrity = spec.suites, spec.integrity
    ours = {case.id: case for suite in suites for case in suite.cases}
    ran = {suite.path for suite in suites}
    are_files = all(place_of(path) is not None for path in ran)
    for suite, case in baseline.cases():
        known = then.get(case.id)
        if case.status != "passed" or known is None:
            continue
        is_here = suite.path in ran or (are_files and place_of(suite.path) is None)
        if case.id not in ours and is_here:
            digest = digest_of(Fingerprints(known.fingerprint, known.metrics))
            lost = Difference(kind="removed", case=case.id, before=case.name, effect="unproven", fingerprint=digest)
            yield acknowledged(lost, integrity.accepted)
        elif case.id in ours and not Match.of(baseline_case(ours[case.id].fingerprints, {}), known).comparable:
            digest = digest_of(ours[case.id].fingerprints)
            edited = Difference(kind="edited", case=case.id, effect="unproven", fingerprint=digest)
            yield acknowledged(edited, integrity.accepted)
