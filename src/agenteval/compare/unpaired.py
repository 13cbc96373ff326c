"""Finds what a change withdraws from the comparison: removed and changed cases and metrics, and lost scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from agenteval.compare.gate_counts import of_cases, some
from agenteval.compare.integrity.integrity import withdrawn_cases
from agenteval.compare.lost_scores import MAX_UNPAIRED, deciding_metrics, lost_scores
from agenteval.compare.paired_runs import PairedRuns
from agenteval.compare.pairing import Match, own_cases
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import OWN_NAME, Run
from agenteval.results.verdict import Unproven


def unpaired(runs: PairedRuns) -> list[Unproven]:
    """Return why a comparison proves too little: cases, metrics or scores of the baseline have no counterpart.

    A run of the base branch itself is never reproached for the change, because the merge has accepted it.
    """
    current, baseline = runs.current, runs.baseline
    counting = list(runs.counting())
    found = list(_cases(counting)) or list(withdrawn_cases(counting, runs.quarantined)) or list(_nothing(runs))
    if baseline.tool.name == OWN_NAME:
        found += _metrics(runs, counting)
    found += lost_scores(runs)
    merged = is_merged(current.run, baseline.run)
    return [point for point in found if point.mended_by == "outside" or not merged]


class Ran(Protocol):
    """Where a run was made."""

    @property
    def commit(self) -> str | None:
        """The evaluated commit."""
        ...

    @property
    def ref(self) -> str | None:
        """Its branch."""
        ...

    @property
    def uncommitted(self) -> bool:
        """Whether files differ from the commit."""
        ...

    @property
    def workflow_run_id(self) -> str | None:
        """The run of the workflow; ``None`` on a laptop."""
        ...


def is_merged(current: Ran, baseline: Run) -> bool:
    """Return whether a workflow ran on the branch of its baseline."""
    return current.workflow_run_id is not None and current.ref is not None and current.ref == baseline.ref


def continues_branch(current: Ran, baseline: Run) -> bool:
    """Return whether a run is of the branch of its baseline: a merged one, or on a laptop another commit.

    A run of the same commit on a laptop, or of files that are not committed, is of a change.
    """
    is_same = current.ref is not None and current.ref == baseline.ref
    is_other = current.commit not in {None, baseline.commit} and not current.uncommitted
    return is_merged(current, baseline) or (is_same and is_other and current.workflow_run_id is None)


def _cases(cases: Collection[ComparedCase]) -> Iterator[Unproven]:
    changes = Counter(case.change for case in cases)
    lost = changes["removed"] + changes["changed"]
    if lost > MAX_UNPAIRED * len(cases):
        parts = [f"{changes['removed']:,} removed"] if changes["removed"] else []
        parts += [f"{changes['changed']:,} with changed rules or questions"] if changes["changed"] else []
        names = [case.name for case in cases if case.change in {"removed", "changed"}]
        unpaired_cases = f"{of_cases(lost, len(cases))} of the baseline cannot be compared"
        text = f"{unpaired_cases}: {', '.join(parts)} ({some(names)})"
        yield Unproven(what="cases", text=text, mended_by="change")


def _nothing(runs: PairedRuns) -> Iterator[Unproven]:
    """Yield that no case was compared; a selection of cases can consist of new ones."""
    covered = runs.current.run.coverage
    is_selection = covered is not None and bool(covered.selection_note)
    if runs.pairing.compared or is_selection or not any(suite.cases for suite in runs.baseline.suites):
        return
    text = "no case of the baseline is in this run, so nothing was compared: compare with a run of the same suites"
    yield Unproven(what="cases", text=text, mended_by="change")


def _metrics(runs: PairedRuns, cases: Iterable[ComparedCase]) -> Iterator[Unproven]:
    """Yield the metrics that decided about cases of the baseline, and by which too few of these can be compared."""
    paired = {case.id for case in cases if case.change not in {"removed", "changed"}}
    now, then = own_cases(runs.current), own_cases(runs.baseline)
    decided: dict[str, list[bool]] = {}
    for suite, case in runs.baseline.cases():
        if case.id in paired:
            match = Match.of(now.get(case.id), then.get(case.id))
            for name in sorted(deciding_metrics(suite, case) - set(runs.not_gating)):
                decided.setdefault(name, []).append(match.allows(name))
    withdrawn = [
        f"{name} in {of_cases(kept.count(False), len(kept))}"
        for name, kept in decided.items()
        if kept.count(False) > MAX_UNPAIRED * len(kept)
    ]
    if withdrawn:
        text = f"metrics that decided about cases of the baseline were changed or removed: {some(withdrawn)}"
        yield Unproven(what="metric", text=text, mended_by="change")
