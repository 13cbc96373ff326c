"""Finds what a change withdraws from the comparison: removed and changed cases and metrics, and lost scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from agenteval.gate.evidence import Sides
from agenteval.gate.failures import of_cases, some
from agenteval.gate.integrity import FIX, withdrawn_cases
from agenteval.gate.pairing import Match, compared_cases, is_merged, own_cases, status_by
from agenteval.gate.values import known
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.verdict import Unproven
from agenteval.suite.model import OVERALL

#: Share of the baseline's cases that may be removed or changed.
MAX_UNPAIRED = 0.20


def unpaired(sides: Sides, baseline: Results, pairing: Collection[ComparedCase]) -> list[Unproven]:
    """Return why a comparison proves too little: cases, metrics or scores of the baseline have no counterpart.

    A run of the base branch itself is never reproached for the change, because the merge has accepted it.
    """
    out = sides.quarantined
    counting = [case for case in pairing if case.change != "new" and case.id not in out]
    found = list(_cases(counting)) or list(withdrawn_cases(counting, out)) or list(_nothing(sides, pairing))
    if baseline.tool.name == OWN_NAME:
        found += _metrics(sides, baseline, counting)
    if is_merged(sides.current.run, baseline.run):
        found = []
    return [*found, *_lost(sides)]


def _lost(sides: Sides) -> Iterator[Unproven]:
    for label, values in sides.evidence.first.items():
        lost = [case for case, row in values.items() if not known(row)]
        if len(lost) > sides.policy.rules.outage * len(values):
            names = some([sides.cases[case][1].name for case in lost])
            text = f"{of_cases(len(lost), len(values))} have no score of '{label}': {names}; run it again"
            yield Unproven(what="scores", text=text, mended_by="outside")


def _cases(cases: Collection[ComparedCase]) -> Iterator[Unproven]:
    changes = Counter(case.change for case in cases)
    lost = changes["removed"] + changes["changed"]
    if lost > MAX_UNPAIRED * len(cases):
        parts = [f"{changes['removed']:,} removed"] if changes["removed"] else []
        parts += [f"{changes['changed']:,} with changed rules or questions"] if changes["changed"] else []
        names = [case.name for case in cases if case.change in {"removed", "changed"}]
        unpaired_cases = f"{of_cases(lost, len(cases))} of the baseline cannot be compared"
        text = f"{unpaired_cases}: {', '.join(parts)} ({some(names)}); {FIX.format(them='them')}"
        yield Unproven(what="cases", text=text, mended_by="change")


def _nothing(sides: Sides, pairing: Collection[ComparedCase]) -> Iterator[Unproven]:
    covered = sides.current.run.coverage
    is_selection = covered is not None and bool(covered.selection_note)
    if compared_cases(pairing) or is_selection or not any(suite.cases for suite in sides.baseline.suites):
        return
    text = "no case of the baseline is in this run, so nothing was compared: compare with a run of the same suites"
    yield Unproven(what="cases", text=text, mended_by="change")


def _metrics(sides: Sides, baseline: Results, cases: Iterable[ComparedCase]) -> Iterator[Unproven]:
    paired = {case.id for case in cases if case.change not in {"removed", "changed"}}
    now, then = own_cases(sides.current), own_cases(baseline)
    ignored = {name for name, gates in sides.policy.gating.items() if not gates}
    decided: dict[str, list[bool]] = {}
    for suite, case in baseline.cases():
        if case.id in paired:
            match = Match.of(now.get(case.id), then.get(case.id))
            for name in sorted(_deciding(suite, case) - ignored):
                decided.setdefault(name, []).append(match.allows(name))
    withdrawn = [
        f"{name} in {of_cases(kept.count(False), len(kept))}"
        for name, kept in decided.items()
        if kept.count(False) > MAX_UNPAIRED * len(kept)
    ]
    if withdrawn:
        changed = f"metrics that decided about cases of the baseline were changed or removed: {some(withdrawn)}"
        text = f"{changed}; restore them, or make a new baseline"
        yield Unproven(what="metric", text=text, mended_by="change")


def _deciding(suite: SuiteResult, case: CaseResult) -> set[str]:
    found = {score.id for score in case.scores if score.passed is not None and score.gating}
    if suite.threshold is not None and case.score is not None:
        found.add(OVERALL)
    return found


def ungraded(sides: Sides, cases: Iterable[ComparedCase]) -> list[Unproven]:
    """Return that some failing cases were compared with nothing; empty without such cases.

    The base branch may have added or changed a metric since its last run. Then no earlier score tells whether the
    case is worse now, so it raises no suspicion and does not run again.
    """
    found: dict[str, Collection[str]] = {}
    for compared in cases:
        if compared.status_before in {"passed", "error"} and compared.status_after == "failed":
            suite, case = sides.cases[compared.id]
            names = _failing(suite, case) - sides.scored_before(case.id)
            if names and status_by(case, names, suite.threshold) == "failed":
                found[case.name] = names
    if not found:
        return []
    metrics = some([f"'{name}'" for name in sorted(set[str]().union(*found.values()))])
    amount = "1 case that did not fail in the baseline fails" if len(found) == 1 else f"{len(found):,} cases fail"
    unknown = f"{amount} by {metrics}, which no earlier run has scored in the same way: {some(list(found))}"
    text = f"{unknown}; mend them, or merge the metric first"
    return [Unproven(what="metric", text=text, mended_by="change")]


def _failing(suite: SuiteResult, case: CaseResult) -> set[str]:
    if suite.threshold is not None:
        return {OVERALL}
    return {score.id for score in case.scores if score.passed is False and score.gating}
