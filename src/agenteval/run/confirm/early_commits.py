"""The early commits of the base branch that its newest commit may have to run beside."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.epoch import commits_of, epoch_of, may_need_long_look
from agenteval.compare.unpaired import continues_branch
from agenteval.run.resolve.spec import RunSpec


def early_commits(spec: RunSpec) -> tuple[str, ...]:
    """Return the commits for a long look of a run, in the order in which they are tried; empty if it needs none."""
    baseline = spec.baseline.results if spec.baseline is not None else None
    if baseline is None or not spec.compare.looks_back or spec.shard is not None:
        return ()
    if not continues_branch(spec.provenance, baseline.run):
        return ()
    epoch = epoch_of(baseline)
    if not may_need_long_look(epoch):
        return ()
    return tried([commit for commit in commits_of(epoch) if commit != spec.provenance.commit])


def tried(commits: Sequence[str]) -> tuple[str, ...]:
    """Return which commits are tried: the first two, and those after a half and three quarters of all.

    If requirements of an old commit cannot be installed any more, those of its neighbours usually cannot either.
    """
    number = len(commits)
    places = sorted({0, 1, number // 2, 3 * number // 4})
    return tuple(commits[place] for place in places if place < number)
