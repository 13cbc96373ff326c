"""What a run is compared with: the commit, the line of commits before it, and what a search for results asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field, replace
from agenteval.github.artifacts import ArtifactLimits
from agenteval.github.event import EventRights
from agenteval.github.history import GithubHistory, distance, first_parents
from agenteval.github.workflow_runs import WorkflowRun
from agenteval.results.model import Results
from agenteval.run.base_commit import ControlRule
from agenteval.run.git import Clone, ControlError, Head, git

if TYPE_CHECKING:
    from github import Github


@dataclass
class CommitLine:
    """The commit at which a search starts, and its ancestors; ``asked`` is called before each request to GitHub.

    Attributes:
        states: the commit and its first parents, nearest first, as far as they are known.
    """

    api: Github
    repository: str
    start: str
    clone: Clone | None
    asked: Callable[[], None]
    states: tuple[str, ...] = ()
    _distances: dict[str, int | None] = field(default_factory=dict)

    def look_back(self) -> None:
        """Find the states of the branch up to the start."""
        from github import UnknownObjectException

        if self.clone is not None and not self.clone.is_shallow:
            self.states = self.clone.first_parents(self.start)
        if not self.states:
            self.asked()
            try:
                self.states = first_parents(self.api, self.repository, self.start)
            except UnknownObjectException:
                # A commit that only the checkout contains.
                self.states = (self.start,)
        self._distances |= {commit: place for place, commit in enumerate(self.states)}

    def sorted(self, runs: Iterable[WorkflowRun]) -> Iterator[tuple[WorkflowRun, int]]:
        """Yield the runs of the start and of its ancestors with their distances.

        Runs of the known states come first, the nearest one first. The others follow in the given order.
        """
        places = {commit: place for place, commit in enumerate(self.states)}
        runs = list(runs)
        near = [run for run in runs if run.head_sha in places]
        for run in sorted(near, key=lambda run: places[run.head_sha]):
            yield run, places[run.head_sha]
        for run in runs:
            if run.head_sha not in places and (far := self._distance(run.head_sha)) is not None:
                yield run, far

    def between(self, commit: str) -> tuple[str, ...]:
        """Return the states after a commit, up to the start, newest first; empty if they are unknown."""
        return self.states[: self.states.index(commit)] if commit in self.states else ()

    def _distance(self, commit: str) -> int | None:
        if commit not in self._distances:
            self._distances[commit] = self._measured(commit)
        return self._distances[commit]

    def _measured(self, commit: str) -> int | None:
        if self.clone is not None and not self.clone.is_shallow:
            try:
                return self.clone.distance(commit, self.start)
            except AgentEvalError:
                # A full clone need not have the commits of other branches.
                pass
        self.asked()
        return distance(self.api, self.repository, commit, self.start)


_SHORT = 7
_MOST_NAMED = 5


@dataclass(frozen=True)
class Start:
    """Start at a commit; ``place`` describes it in messages."""

    commit: str
    place: str


@dataclass(frozen=True)
class SearchLimits:
    """Limits of a search; the requests list runs and their artifacts, and compare commits."""

    artifact: ArtifactLimits = field(default_factory=ArtifactLimits)
    downloads: int = 20
    runs: int = 50
    requests: int = 100
    total_s: float = 300.0


@dataclass(frozen=True)
class Found:
    """A baseline.

    Attributes:
        distance: commits from the start of the search; ``None`` for a given run.
        start: the start of the search; ``None`` for a given run.
        between: the states of the branch after the commit, up to the start, newest first; empty if they are unknown.
        notes: skipped runs, and parts left out of the results.
    """

    results: Results = field(repr=False)
    commit: str
    run_id: int
    created_at: datetime
    distance: int | None
    start: Start | None = None
    between: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """No baseline: the reason as a sentence, and the skipped runs."""

    reason: str
    notes: tuple[str, ...] = ()


def describe(found: Found, now: datetime | None = None) -> str:
    """Describe a baseline: commit, distance, age at a time, and run."""
    parts = [f"commit {short(found.commit)}"]
    if found.start is not None and found.distance is not None:
        place = found.start.place
        parts.append(f"{counted(found.distance, 'commit')} before {place}" if found.distance else place)
    parts.append(f"{_age((now or datetime.now(UTC)) - found.created_at)} old")
    return f"baseline: {', '.join(part for part in parts if part)} (workflow run {found.run_id}){_included(found)}"


def _included(found: Found) -> str:
    # They have no usable run, so their changes are compared too.
    if not found.between:
        return ""
    named = ", ".join(map(short, found.between[:_MOST_NAMED]))
    more = len(found.between) - _MOST_NAMED
    return f"; the comparison includes {named}{f' and {more:,} more' if more > 0 else ''}"


def short(commit: str) -> str:
    """Return the short form of a commit."""
    return commit[:_SHORT]


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes < 120:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // (24 * 60), "day")


_DEEPEN = "set `fetch-depth: 0` of actions/checkout, or name a run with the input baseline"


@dataclass(frozen=True)
class Lineage:
    """The commit that is checked out, and what it is compared with.

    Attributes:
        start: the commit at which the search for a baseline starts, or why it is unknown.
        head: the commit that is checked out; without a checkout of the repository the commit of the event. ``None``
            if it is unknown.
        base: the commit whose rules count, if it is certain that neither the change nor an earlier step of the job
            has chosen it; ``None`` if it is unknown, or if the commit that is checked out is the event's own.
        is_stray: whether the commit that is checked out is certainly without the commit of the event.
    """

    rule: ControlRule
    start: Start | str
    head: Head | None = None
    base: str | None = None
    clone: Clone | None = None
    is_stray: bool = False


def find_lineage(event: EventRights, here: Path, history: GithubHistory) -> Lineage:
    """Return what a run is compared with; ``history`` helps if the checkout is shallow or missing."""
    found = _found(here)
    is_own = found is not None and _is_of_event(found, event)
    clone = found if found is not None and (is_own or _is_of_fork(found, event, history)) else None
    commit = event.github_sha or event.commit
    if clone is None and commit is None:
        why = "the event names no commit, and the workspace contains no checkout of the repository"
        return Lineage(_rule_of_event(event), why, base=event.base_commit)
    try:
        head = clone.head if clone is not None else history.head(commit or "")
    except AgentEvalError as error:
        why = f"the commit that is evaluated is unknown: {error}"
        return Lineage(_rule_of_event(event), why, base=event.base_commit)
    finder = _Finder(event, head, clone, history, is_elsewhere=found is not clone, has_branches=is_own)
    return replace(finder.find(), is_stray=finder.is_stray())


def _found(here: Path) -> Clone | None:
    try:
        return Clone.find(here)
    except AgentEvalError:
        return None


def _is_of_event(clone: Clone, event: EventRights) -> bool:
    if clone.head.commit == event.github_sha:
        return True
    try:
        url = git(clone.root, "remote", "get-url", "origin")
    except ControlError:
        return True
    address = url.rstrip("/").removesuffix(".git").casefold().replace(":", "/")
    return address.endswith(f"/{(event.repository or '').casefold()}")


def _is_of_fork(clone: Clone, event: EventRights, history: GithubHistory) -> bool:
    """Return whether the commit that is checked out is one of a pull request, checked out from its fork.

    GitHub finds the commits of forks in the repository too, and those of no other repository.
    """
    if clone.head.commit == event.commit:
        return True
    try:
        history.head(clone.head.commit)
    except AgentEvalError:
        return False
    return True


def _rule_of_event(event: EventRights) -> ControlRule:
    """Return the rule that needs no knowledge about the commit that is checked out."""
    branch = event.base_ref or event.baseline_branch
    if event.event == "pull_request" or event.requested_by is not None:
        return ControlRule("pull-request", event.github_sha, event.base_commit, branch)
    if event.event == "merge_group":
        return ControlRule("previous", before=event.before, branch=branch)
    if event.ref != f"refs/heads/{event.baseline_branch}":
        return ControlRule("merge-base", branch=branch)
    if event.event == "push":
        return ControlRule("previous", before=event.before, branch=branch)
    return ControlRule("first-parent", branch=branch)


@dataclass(frozen=True)
class _Finder:
    """Finds the lineage of a commit.

    Attributes:
        is_elsewhere: whether the working directory is in the checkout of another repository.
        has_branches: whether the checkout is of the repository itself; the author of a fork chooses its branches.
    """

    event: EventRights
    head: Head
    clone: Clone | None
    history: GithubHistory
    is_elsewhere: bool
    has_branches: bool

    def find(self) -> Lineage:
        rule = _rule_of_event(self.event)
        if rule.kind == "pull-request":
            return self._of_pull_request(rule)
        if rule.kind != "merge-base" and self.head.commit == self.event.github_sha:
            return self._of_branch(rule)
        return self._of_checkout(rule.branch)

    def is_stray(self) -> bool:
        """Return whether the commit that is checked out is certainly without the commit of the event."""
        event, head = self.event, self.head
        wanted = event.commit
        if wanted is None or head.commit == event.github_sha or wanted in {head.commit, *head.parents}:
            return False
        has = self.clone.is_ancestor(wanted, head.commit) if self.clone is not None else None
        if has is not None:
            return not has
        try:
            return self.history.merge_base(wanted, head.commit) != wanted
        except AgentEvalError:
            # A commit that a step has made.
            return False

    def _of_pull_request(self, rule: ControlRule) -> Lineage:
        if self.head.commit == self.event.github_sha and len(self.head.parents) > 1:
            base = self.head.parents[0]
            return self._made(rule, Start(base, "the base commit"), base)
        try:
            rule = replace(rule, fork=self._left())
        except AgentEvalError as error:
            why = f"the merge base is unknown: {error}; {_DEEPEN}"
            return self._made(rule, why, self.event.base_commit)
        place = "the base commit" if self.head.is_merge_into(rule.fork) else "the merge base"
        return self._made(rule, Start(rule.fork or "", place), self.event.base_commit)

    def _left(self) -> str:
        """Return where the pull request left its base branch.

        GitHub is asked first, because an earlier step can have moved the branches of the checkout.

        Raises:
            AgentEvalError: it is unknown.
        """
        head, base = self.head.commit, self.event.base_commit
        try:
            found = self.history.merge_base(self.event.base_ref or base or "", head)
            # After the merge, the base branch contains the pull request.
            return self.history.merge_base(base, head) if found == head and base else found
        except AgentEvalError as error:
            if self.clone is None or base is None:
                raise
            try:
                return self.clone.merge_base(head, base)
            except ControlError:
                raise error from None

    def _of_branch(self, rule: ControlRule) -> Lineage:
        if rule.kind == "first-parent":
            return self._of_state(rule)
        place = "the queue before the group" if self.event.event == "merge_group" else "the commit before the push"
        before = rule.before
        if before and self.clone is not None and self.clone.is_ancestor(before, self.head.commit) is False:
            before = None
        base = before or next(iter(self.head.parents), None)
        if base is None:
            why = f"there is no commit before commit {short(self.head.commit)}"
            return self._made(rule, why, self._trusted())
        return self._made(rule, Start(base, place), self._trusted())

    def _of_checkout(self, branch: str | None) -> Lineage:
        """Return the lineage of a commit of which the event tells nothing."""
        if branch is None:
            why = "the event does not name the default branch; name a run with the input baseline"
            return self._made(ControlRule("merge-base"), why, self._trusted())
        try:
            fork = self._fork(branch)
        except AgentEvalError as error:
            why = f"it is unknown where commit {short(self.head.commit)} left {branch}: {error}; {_DEEPEN}"
            return self._made(ControlRule("merge-base", branch=branch), why, self._trusted())
        if fork == self.head.commit:
            return self._of_state(ControlRule("first-parent", branch=branch))
        place = "the base commit" if self.head.is_merge_into(fork) else "the merge base"
        rule = ControlRule("merge-base", branch=branch, fork=fork)
        return self._made(rule, Start(fork, place), self._trusted())

    def _fork(self, branch: str) -> str:
        known = self.clone.fork(self.head.commit, branch) if self.clone is not None and self.has_branches else None
        return known or self.history.merge_base(branch, self.head.commit)

    def _of_state(self, rule: ControlRule) -> Lineage:
        """Return the lineage of a commit of the branch that the event did not bring: it may have a run already."""
        start = Start(self.head.commit, f"commit {short(self.head.commit)}")
        return self._made(rule, start, self._trusted())

    def _trusted(self) -> str | None:
        """Return the commit of the event whose rules count for another one; ``None`` as for `Lineage.base`.

        A workflow can check out anything, also the head of a fork, for events that have the repository's secrets.
        """
        event = self.event
        if event.event == "merge_group":
            return event.before
        if event.event.startswith("pull_request") or (event.ref or "").startswith("refs/pull/"):
            return event.base_commit
        is_own = self.head.commit == event.github_sha and not self.is_elsewhere
        return None if is_own and not event.is_proposed else event.github_sha

    def _made(self, rule: ControlRule, start: Start | str, base: str | None) -> Lineage:
        return Lineage(rule, start, self.head, base, self.clone)
