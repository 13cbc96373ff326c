"""Resolves a run: settings, files, the base commit, what was accepted and earlier attempts become one specification.

Accepting changes is described in docs/gate.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import replace
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
from agenteval.gate.run_scores import pool_case
from agenteval.results.comparison import PoolCase
from agenteval.results.model import Difference
from agenteval.run.base_commit import BaseCommit, base_commit, copied_commit
from agenteval.run.config import Settings
from agenteval.run.context import Attempt, FoundBaseline, RunContext, is_judged_by_base, named
from agenteval.run.git import ControlError, checked_commit
from agenteval.run.resolve.draft import Draft, read_draft
from agenteval.run.resolve.spec import (
    ControlSpec,
    Earlier,
    RulesInForce,
    RunSpec,
    compare_policy,
    gate_policy,
    llm_settings,
)
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
    draft = read_draft(settings, context or RunContext())
    return _spec(draft, own_rules(draft, settings), Integrity(), draft.search.found)


@contextmanager
def resolve(settings: Settings, context: RunContext | None = None) -> Iterator[RunSpec]:
    """Yield everything about a run: its cases and rules are those of the base commit, its agents those of the change.

    The base commit's files exist until the end of the block. Without a base commit, the run is judged by its own
    rules, and is unproven if the change could have chosen them. What was accepted counts in both.
    """
    context = context or RunContext()
    draft = read_draft(settings, context)
    entries = read_accepted(draft.sources.here, draft.redact)
    merged = draft.baseline.run.accepted if draft.baseline is not None else ()
    today = datetime.now(UTC).date()
    given = context.given()
    labelled, unnamed = named(
        given, (case for suite in draft.suites for case in suite.cases), draft.baseline, draft.redact
    )
    accepted = (*in_force(entries, merged, today), *labelled)
    notes = [*map(draft.redact, ended_notes(entries, merged, today)), *unnamed]
    rules = own_rules(draft, settings)
    with ExitStack() as entered:
        base: BaseCommit | AgentEvalError | None = None
        if _has_base(draft, settings, context):
            # Imported here: most runs on a laptop have no base commit.
            from agenteval.run.rules.base import presented_by_base, read_base_rules
            from agenteval.run.rules.under_base import rules_of_base

            base = _base_commit(draft, context, entered)
            try:
                # Recorded traces need no agent.
                theirs = read_base_rules(base, draft.sources, draft.baseline, agents=draft.traces is None)
            except AgentEvalError as error:
                # Only the merge of the shards knows the baseline.
                is_compared = draft.baseline is not None or draft.shard is not None
                rule, ref = context.control.rule, draft.provenance.ref
                rules = rules_without_base(
                    rules, error, rule, ref, fail_on=settings.fail_on, is_compared=is_compared, redact=draft.redact
                )
            else:
                if theirs.is_empty:
                    # The change brings the first suite.
                    shown = presented_by_base(draft.presentation, theirs.files.of_run, theirs.place)
                    rules = replace(rules, presentation=shown, differences=(NO_RULES,))
                else:
                    rules = rules_of_base(draft, settings, theirs, accepted)
        asked_by = draft.redact(given.asked_by) or (_OPTION if settings.prove else "")
        first = "whole" if settings.is_whole else rules.compare.first
        rules = replace(rules, compare=replace(rules.compare, asked_by=asked_by, first=first))
        integrity = Integrity(
            differences=rules.differences,
            base_cases=rules.base_cases,
            accepted=accepted,
            keys=tuple(entry.key for entry in entries),
            renamed=rules.renamed,
        )
        integrity, compared = pair_with_baseline(draft, rules, integrity)
        notes += map(draft.redact, changed_notes(accepted, integrity.differences))
        integrity = replace(integrity, accepted=settled(accepted, integrity.differences))
        attempt = _attempt(draft, rules, integrity, base, context)
        control = _control(draft, rules, base, context, entered)
        yield _spec(draft, rules, integrity, compared, attempt=attempt, control=control, notes=notes)


def _spec(
    draft: Draft,
    rules: RulesInForce,
    integrity: Integrity,
    baseline: FoundBaseline | None,
    *,
    attempt: Attempt | None = None,
    control: ControlSpec | None = None,
    notes: Iterable[str] = (),
) -> RunSpec:
    limits = rules.llm.limits
    covered = {"max_llm_calls": limits.max_calls, "max_cost_usd": limits.max_cost_usd}
    return RunSpec(
        cases=rules.cases,
        traces=draft.traces,
        settings=rules.settings,
        configs=tuple(item for item in draft.configs.all if item.name),
        limits=draft.limits,
        llm=rules.llm,
        setup=draft.setup,
        suites=rules.suites,
        gate=rules.gate,
        compare=rules.compare,
        integrity=integrity,
        earlier=Earlier(baseline=baseline, missing=draft.search.missing, runs=draft.earlier, attempt=attempt),
        control=replace(
            control or ControlSpec(sources=draft.sources), suites=rules.base_suites, agents=rules.controls
        ),
        presentation=rules.presentation,
        provenance=draft.provenance,
        coverage=rules.coverage.model_copy(update=covered),
        shard=rules.shard,
        output=draft.output,
        redact=draft.redact,
        warnings=(*draft.warnings, *rules.warnings, *notes, *(attempt.warnings if attempt is not None else ())),
    )


def _base_commit(draft: Draft, context: RunContext, entered: ExitStack) -> BaseCommit | AgentEvalError:
    """Return the base commit, or why it cannot be used."""
    baseline = draft.baseline.run.commit if draft.baseline is not None else None
    try:
        return entered.enter_context(base_commit(draft.sources.here, context.control, baseline))
    except AgentEvalError as error:
        return error


def _control(
    draft: Draft,
    rules: RulesInForce,
    base: BaseCommit | AgentEvalError | None,
    context: RunContext,
    entered: ExitStack,
) -> ControlSpec:
    """Return what passes side by side with the base commit need."""
    control = ControlSpec(base=base, branch=context.control.rule.branch, sources=draft.sources)
    if not rules.compare.can_run or (draft.baseline is None and draft.search.missing is None):
        return control
    if base is None and any(item.case.id not in rules.controls for item in rules.cases):
        base = _base_commit(draft, context, entered)
    if draft.baseline is None or not isinstance(base, BaseCommit):
        return replace(control, base=base)
    earlier = {entry.commit for entry in draft.baseline.pool if entry.commit}
    unrelated = frozenset(commit for commit in earlier if base.clone.is_ancestor(commit, base.commit) is False)
    return replace(control, base=base, unrelated=unrelated, anchor=_anchor(draft, base, context, entered))


def _anchor(
    draft: Draft, base: BaseCommit, context: RunContext, entered: ExitStack
) -> BaseCommit | AgentEvalError | None:
    """Return the commit for a long look of this run, or why it cannot be used; ``None`` if none can be due."""
    baseline = draft.baseline
    if baseline is None or draft.shard is not None or not continues_branch(draft.provenance, baseline.run):
        return None
    newest = max(baseline.pool, key=lambda entry: entry.created_at, default=None)
    commit = newest.anchor if newest is not None else None
    if commit is None or commit == draft.provenance.commit:
        return None
    try:
        if base.clone.is_ancestor(checked_commit(commit), base.clone.head.commit) is False:
            return ControlError(f"commit {commit[:12]} is not in the history of the branch any more")
        return entered.enter_context(copied_commit(base.clone, context.control.remote, commit))
    except AgentEvalError as error:
        return error


def _attempt(
    draft: Draft,
    rules: RulesInForce,
    integrity: Integrity,
    base: BaseCommit | AgentEvalError | None,
    context: RunContext,
) -> Attempt | None:
    """Begin an attempt of a pull request; ``None`` if the run is for none, or a shard, which decides nothing."""
    if context.attempts is None or draft.shard is not None:
        return None
    # Imported here: most runs are for no pull request.
    from agenteval.run.attempt import begin_attempt

    return begin_attempt(draft, rules, integrity, base, context.attempts())


def own_rules(draft: Draft, settings: Settings) -> RulesInForce:
    """Return the rules of the change itself."""
    config = draft.of_run
    return RulesInForce(
        suites=draft.suites,
        cases=draft.cases,
        settings=draft.settings,
        controls=draft.controls,
        gate=gate_policy(settings, config),
        compare=compare_policy(config.compare, draft.cases, draft.traces),
        presentation=draft.presentation,
        llm=llm_settings(settings, config.llm),
        shard=draft.shard,
        coverage=draft.coverage,
    )


def _has_base(draft: Draft, settings: Settings, context: RunContext) -> bool:
    """Return whether the base commit can decide: suites that a program has built are in no commit."""
    if any(isinstance(suite, Suite) for suite in settings.suites):
        return False
    return is_judged_by_base(context.control.rule.kind, draft.provenance.ref, draft.baseline)


def pair_with_baseline(
    draft: Draft, rules: RulesInForce, integrity: Integrity
) -> tuple[Integrity, FoundBaseline | None]:
    """Return the baseline with the new ids of renamed cases, and the differences of its cases.

    Without a base commit, these contain the cases of the baseline that are gone or edited.
    """
    baseline = draft.search.found
    if baseline is None or draft.traces is not None:
        return integrity, baseline
    results = baseline.results
    ours = {case.id: case for suite in rules.suites for case in suite.cases}
    then = own_cases(results)
    names = _renamed(integrity, ours, then)
    found = list(_renaming(draft, integrity, names))
    if integrity.base_cases is None:
        before = {names.get(case_id, case_id): case for case_id, case in then.items()}
        found += _lost(draft, rules.suites, integrity, before)
    integrity = replace(integrity, renamed=names, differences=(*integrity.differences, *found))
    return integrity, replace(baseline, results=with_new_ids(results, names))


def _renamed(integrity: Integrity, ours: Mapping[str, Case], then: Mapping[str, PoolCase]) -> dict[str, str]:
    """Return the new ids of the baseline's cases, by old id."""
    if not (then.keys() - ours.keys()) or not (ours.keys() - then.keys()):
        return {}
    # The pairs of the cases that the base commit has are known.
    decided = integrity.base_cases or frozenset()
    before = digests_of({case_id: case for case_id, case in then.items() if case_id not in decided})
    after = {case_id: digest_of(case.fingerprints) for case_id, case in ours.items() if case_id not in then}
    of_base = {old: new for old, new in integrity.renamed.items() if new not in then}
    return {**renamed(before, after, ours), **of_base}


def _renaming(draft: Draft, integrity: Integrity, names: Mapping[str, str]) -> Iterator[Difference]:
    listed = {item.case for item in integrity.differences if item.kind == "renamed"}
    for old, new in ((draft.redact(old), draft.redact(new)) for old, new in names.items()):
        if new not in listed:
            yield Difference(kind="renamed", case=new, before=old, after=new, effect="paired")


def _lost(
    draft: Draft, suites: Sequence[Suite], integrity: Integrity, then: Mapping[str, PoolCase]
) -> Iterator[Difference]:
    """Yield the passing cases of the baseline that are gone, or that cannot be compared with those of the change."""
    baseline = draft.baseline
    # The base branch itself is not reproached for the change, because the merge has accepted it.
    if baseline is None or is_merged(draft.provenance, baseline.run):
        return
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
        elif case.id in ours and not Match.of(pool_case(ours[case.id].fingerprints, {}), known).comparable:
            digest = digest_of(ours[case.id].fingerprints)
            edited = Difference(kind="edited", case=case.id, effect="unproven", fingerprint=digest)
            yield acknowledged(edited, integrity.accepted)
