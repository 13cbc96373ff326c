"""Says which runs are judged by the rules of a base commit."""

from __future__ import annotations

from agenteval.results.model import OWN_NAME, Results
from agenteval.run.control_commit import ControlRule, Kind

_QUEUE = "refs/heads/gh-readonly-queue/"


def is_judged_by_base(kind: Kind, ref: str | None, baseline: Results | None) -> bool:
    """Return whether a run is judged by a base commit.

    A pull request and a merge group always are. A run of the base branch is not, because the merge has accepted the
    change. Other runs are if they have a baseline, from whose commit the base commit follows.

    Args:
        kind: how the base commit follows from the event.
        ref: the branch or pull request of the run.
        baseline: the run to compare with; ``None`` without one.
    """
    if kind == "pull-request" or is_merge_group(kind, ref):
        return True
    if baseline is None or baseline.run.commit is None or baseline.tool.name != OWN_NAME:
        return False
    return kind in {"merge-base", "local"}


def is_merge_group(kind: Kind, ref: str | None) -> bool:
    """Return whether a run is of a merge queue."""
    return kind == "previous" and (ref or "").startswith(_QUEUE)


def is_judged_by_base_alone(rule: ControlRule, ref: str | None) -> bool:
    """Return whether an event proposes a change and names its base commit, so that the change may not judge itself.

    Args:
        rule: how the base commit follows from the event.
        ref: the branch or pull request of the run.
    """
    if rule.kind == "pull-request":
        return rule.base is not None
    return rule.before is not None and is_merge_group(rule.kind, ref)
