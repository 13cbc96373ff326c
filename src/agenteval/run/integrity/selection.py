"""The cases that a run selects, by their names and tags in the base commit too."""

from __future__ import annotations

from dataclasses import replace

from agenteval.compare.integrity.pairs import Pairs
from agenteval.run.resolve.spec import RunSpec


def also_selected_by_base(spec: RunSpec, pairs: Pairs) -> RunSpec:
    """Return the specification that also runs the cases that are selected in the base commit.

    Otherwise a change could rename a case so that ``--filter`` leaves it out. Of a sharded run, the first shard runs
    them.

    Args:
        spec: the specification, from the files of the change.
        pairs: the cases of the change with their versions in the base commit.
    """
    added = [
        item
        for item in spec.left_out
        if (theirs := pairs.base.get(item.case.id)) is not None and spec.selection.selects(theirs)
    ]
    if not added:
        return spec
    shard = spec.shard
    if shard is not None:
        shard = shard.model_copy(update={"cases": [*shard.cases, *(item.case.id for item in added)]})
    here = added if shard is None or shard.index == 1 else []
    order = {case.id: place for place, case in enumerate(case for suite in spec.suites for case in suite.cases)}
    chosen = sorted((*spec.cases, *here), key=lambda item: order[item.case.id])
    left = {item.case.id for item in added}
    return replace(
        spec,
        cases=tuple(chosen),
        left_out=tuple(item for item in spec.left_out if item.case.id not in left),
        shard=shard,
        coverage=spec.coverage.model_copy(update={"selected": spec.coverage.selected + len(added)}),
    )
