"""Finds what a change withdraws from the comparison: removed and changed cases and metrics, and lost scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from agenteval.compare.gate_counts import of_cases, some
from agenteval.compare.integrity.integrity import withdrawn_cases
from agenteval.compare.lost_scores import MAX_UNPAIRED, deciding_metrics, lost_scores
from agenteval.compare.pairing import Match, Pairing, own_cases
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import OWN_NAME, Results, Run
from agenteval.results.verdict import Unproven


def unpaired(
    current: Results,
    baseline: Results,
    pairing: Pairing,
    quarantined: Collection[str],
    not_gating: Collection[str],
    *,
    failures_count: bool = False,
) -> list[Unproven]:
    """Return why a comparison proves too little: cases, metrics or scores of the baseline have no counterpart.

    A run of the base branch itself is never reproached for the change, because the merge has accepted it.

    Args:
        current: the current run.
        baseline: the run to compare with.
        pairing: their cases. Cases that a filter left out are not in it.
        quarantined: ids of quarantined cases, which do not count.
        not_gating: ids of metrics that the policy excludes from the gate.
        failures_count: whether a failure of the agent counts as a score of 0, so that nothing is lost.
    """
    counting = [case for case in pairing.cases if case.change != "new" and case.id not in quarantined]
    found = list(_cases(counting)) or list(withdrawn_cases(counting, quarantined))
    if baseline.tool.name == OWN_NAME:
        found += _metrics(current, baseline, counting, not_gating)
    found += lost_scores(current, baseline, pairing, quarantined, not_gating, failures_count=failures_count)
    merged = is_merged(current.run, baseline.run)
    return [point for point in found if point.mended_by == "outside" or not merged]


def is_merged(current: Run, baseline: Run) -> bool:
    """Return whether a workflow ran on the branch of its baseline."""
    return current.workflow_run_id is not None and current.ref is not None and current.ref == baseline.ref


def _cases(cases: Collection[ComparedCase]) -> Iterator[Unproven]:
    changes = Counter(case.change for case in cases)
    lost = changes["removed"] + changes["changed"]
    if lost > MAX_UNPAIRED * len(cases):
        parts = [f"{changes['removed']} removed"] if changes["removed"] else []
        parts += [f"{changes['changed']} with another question or other metrics"] if changes["changed"] else []
        names = [case.name for case in cases if case.change in {"removed", "changed"}]
        unpaired_cases = f"{of_cases(lost, len(cases))} of the baseline cannot be compared"
        text = f"{unpaired_cases}: {', '.join(parts)} ({some(names)})"
        yield Unproven(what="cases", text=text, mended_by="change")


def _metrics(
    current: Results, baseline: Results, cases: Iterable[ComparedCase], not_gating: Collection[str]
) -> Iterator[Unproven]:
    """Yield the metrics that decided about cases of the baseline, and by which too few of these can be compared."""
    paired = {case.id for case in cases if case.change not in {"removed", "changed"}}
    now, then = own_cases(current), own_cases(baseline)
    decided: dict[str, list[bool]] = {}
    for suite, case in baseline.cases():
        if case.id in paired:
            match = Match.of(now.get(case.id), then.get(case.id))
            for name in sorted(deciding_metrics(suite, case) - set(not_gating)):
                decided.setdefault(name, []).append(match.allows(name))
    withdrawn = [
        f"{name} in {of_cases(kept.count(False), len(kept))}"
        for name, kept in decided.items()
        if kept.count(False) > MAX_UNPAIRED * len(kept)
    ]
    if withdrawn:
        text = f"metrics that decided about cases of the baseline were changed or removed: {some(withdrawn)}"
        yield Unproven(what="metric", text=text, mended_by="change")
