"""How far the commits of runs are before the start of a search: from the checkout, else from GitHub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.ci.github.api.ancestry import distance, first_parents
from agenteval.ci.github.api.workflow_runs import Run
from agenteval.core.errors import AgentEvalError
from agenteval.run.confirm.clone import Clone

if TYPE_CHECKING:
    from github import Github


@dataclass
class Line:
    """The commit at which a search starts, and its ancestors.

    Attributes:
        api: an open connection.
        repository: ``owner/name``.
        start: the commit.
        clone: the checkout; ``None`` without one.
        asked: is called before each request to GitHub.
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

    def sorted(self, runs: Iterable[Run]) -> Iterator[tuple[Run, int]]:
        """Yield the runs of the start and of its ancestors with their distances.

        Runs of the known states come first, the nearest one first. The others follow in the given order.

        Args:
            runs: the newest one first.
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
