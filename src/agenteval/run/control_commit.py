"""The control: the commit that a run is compared with side by side, and how it follows from the event."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from agenteval.core.errors import AgentEvalError

Kind = Literal["local", "merge-base", "first-parent", "previous", "pull-request"]


class ControlError(AgentEvalError):
    """The control cannot run; the message contains the reason and the fix."""


@dataclass(frozen=True)
class ControlRule:
    """How the control follows from the commit that is checked out.

    Attributes:
        kind: ``first-parent``: the first parent. ``previous``: the state of the branch before a push or a merge
            group. ``pull-request``: the first parent of the merge commit, or the merge base if the pull request's own
            branch is checked out. ``merge-base``: the merge base with the baseline's commit. ``local``: the same,
            unless a merge of a change into the branch of the baseline is checked out, outside of this branch.
        merge: the merge commit of the pull request, as the event names it.
        base: commit of the target branch.
        branch: the target branch; of a clone without a CI host the branch of the baseline.
        before: the branch's commit before a push or a merge group; ``None`` if the push did not continue from it.
        fork: where the commit that is checked out left the branch, if the CI host knows it.
    """

    kind: Kind = "local"
    merge: str | None = None
    base: str | None = None
    branch: str | None = None
    before: str | None = None
    fork: str | None = None


@dataclass(frozen=True)
class Head:
    """The commit that is checked out.

    Attributes:
        commit: its id.
        parents: the ids of its parents.
    """

    commit: str
    parents: tuple[str, ...] = ()

    def is_merge_into(self, commit: str | None) -> bool:
        """Return whether it merges something into a commit."""
        return len(self.parents) > 1 and self.parents[0] == commit


@dataclass(frozen=True)
class ControlCommit:
    """The control.

    Attributes:
        commit: the id of the commit.
        note: what the comparison with this commit leaves out; empty if nothing.
        is_of_event: whether the event alone names it, so that no earlier step of the job could choose another one.
    """

    commit: str
    note: str = ""
    is_of_event: bool = False


@dataclass(frozen=True)
class Remote:
    """A repository that single commits can be fetched from.

    Attributes:
        url: its address, without credentials.
        header: HTTP header with the credentials; empty for none.
        variables: environment variables of the connection, such as proxies and certificates.
    """

    url: str
    header: str = field(default="", repr=False)
    variables: dict[str, str] = field(default_factory=dict, repr=False)


class ControlHost(Protocol):
    """What a CI host knows about the control."""

    @property
    def rule(self) -> ControlRule:
        """How the control follows from the commit that is checked out."""
        ...

    @property
    def remote(self) -> Remote | None:
        """The repository to fetch the control from, if the checkout does not contain it."""
        ...

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits.

        Raises:
            AgentEvalError: it is unknown.
        """
        ...


class History(Protocol):
    """The history of the commit that is checked out."""

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        """Return whether a commit is an ancestor of another one; ``None`` if the clone is too shallow to know."""
        ...

    def is_on(self, commit: str, branch: str) -> bool:
        """Return whether a branch, of this clone or of a remote, contains a commit."""
        ...

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits.

        Raises:
            ControlError: it is unknown.
        """
        ...


@dataclass(frozen=True)
class LocalHost:
    """No CI host: the control follows from the clone alone, and nothing is fetched."""

    rule: ControlRule = field(default_factory=ControlRule)
    remote: Remote | None = None

    def merge_base(self, one: str, other: str) -> str:
        """Raise, because only the clone is known."""
        raise ControlError(f"the history between {one[:12]} and {other[:12]} is not in this clone")


def of_baseline(host: ControlHost, ref: str | None) -> ControlHost:
    """Return what is known without a CI host, with the branch of the baseline; a CI host names its branches.

    Args:
        host: what is known.
        ref: full ref of the baseline's branch.
    """
    if not isinstance(host, LocalHost) or ref is None:
        return host
    return replace(host, rule=replace(host.rule, branch=ref.removeprefix("refs/heads/")))


def control_commit(rule: ControlRule, head: Head, baseline: str | None, history: History) -> ControlCommit:
    """Return the control of a commit.

    Args:
        rule: how it follows from the event.
        head: the commit that is checked out.
        baseline: the commit that the baseline evaluated.
        history: answers the questions that the commit alone does not.

    Raises:
        ControlError: there is no such commit, or the clone does not contain the history to find it.
    """
    match rule.kind:
        case "first-parent":
            return _first_parent(head)
        case "previous":
            continues = rule.before is not None and history.is_ancestor(rule.before, head.commit) is not False
            if rule.before and continues:
                return ControlCommit(rule.before, is_of_event=True)
            return _first_parent(head)
        case "pull-request":
            return _of_pull_request(rule, head, history)
        case "merge-base":
            return ControlCommit(rule.fork or history.merge_base(head.commit, _baseline(baseline)))
        case "local":
            return _of_clone(rule, head, _baseline(baseline), history)


def _of_pull_request(rule: ControlRule, head: Head, history: History) -> ControlCommit:
    # Another merge commit can be one of the pull request, whose author chose its first parent.
    if len(head.parents) > 1 and head.commit == rule.merge:
        return ControlCommit(head.parents[0], is_of_event=True)
    if rule.fork is not None and head.is_merge_into(rule.fork):
        return ControlCommit(rule.fork)
    if rule.base is None and rule.fork is None:
        raise ControlError("the event of the pull request does not name its base commit")
    note = (
        f"compared with the merge base: what happened on {rule.branch or 'the base branch'} since is not in the pull "
        "request's run; check out the merge commit, which is the default of actions/checkout"
    )
    found = rule.fork or history.merge_base(head.commit, rule.base or "")
    return ControlCommit(found, note, is_of_event=found == rule.base)


def _of_clone(rule: ControlRule, head: Head, baseline: str, history: History) -> ControlCommit:
    # Merging anything into the change makes the change itself the first parent, so the base branch must have it.
    if rule.branch and len(head.parents) > 1 and history.is_ancestor(baseline, head.parents[0]) is not False:
        is_into_base = history.is_on(head.parents[0], rule.branch) and not history.is_on(head.commit, rule.branch)
        if is_into_base:
            return _first_parent(head)
    return ControlCommit(history.merge_base(head.commit, baseline))


def _first_parent(head: Head) -> ControlCommit:
    if not head.parents:
        raise ControlError(f"commit {head.commit[:12]} has no parent to compare with")
    return ControlCommit(head.parents[0])


def _baseline(commit: str | None) -> str:
    if commit is None:
        raise ControlError("the baseline names no commit; commit its files before the run that makes it")
    return commit
