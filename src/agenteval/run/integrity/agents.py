"""Agents of the change under the limits of the base commit, and how their definitions differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from agenteval.compare.integrity.differences import shown
from agenteval.results.integrity import Difference, Effect
from agenteval.run.confirm.control import Paths
from agenteval.run.integrity.fields import AGENT
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.agents import interpreters_of
from agenteval.suite.agent_kinds import REPLAY
from agenteval.suite.model import AgentSpec

# Values of these attributes are not shown: they can contain anything, for instance a password without a telling name.
_HIDDEN = frozenset({"config", "env", "options", "directory"})


@dataclass(frozen=True)
class BaseAgents:
    """The agents of the base commit, which decide about limits.

    Attributes:
        of: the base commit's agent by the id of the case in the change.
        paths: where a file of the repository is in the base commit's files.
    """

    of: Mapping[str, AgentSpec]
    paths: Paths
    _limited: dict[tuple[int, float | None, int | None], AgentSpec] = field(default_factory=dict, repr=False)

    def limited(self, cases: Iterable[PlannedCase]) -> tuple[PlannedCase, ...]:
        """Return cases whose agents have the limits of the base commit; an agent that cases share stays one object.

        A case that the base commit does not have gets the limits of the other cases of its agent.
        """
        planned = list(cases)
        of_agent: dict[int, AgentSpec] = {}
        for item in planned:
            if item.case.id in self.of:
                of_agent.setdefault(id(item.agent), self.of[item.case.id])
        return tuple(
            replace(item, agent=self._with_limits(item.agent, theirs))
            if (theirs := self.of.get(item.case.id) or of_agent.get(id(item.agent))) is not None
            else item
            for item in planned
        )

    def _with_limits(self, ours: AgentSpec, theirs: AgentSpec) -> AgentSpec:
        # The default number of retries is that of the kind.
        retries = theirs.retries if theirs.kind == ours.kind or theirs.retries is not None else None
        if (ours.timeout_s, ours.retries) == (theirs.timeout_s, retries):
            return ours
        key = (id(ours), theirs.timeout_s, retries)
        if key not in self._limited:
            self._limited[key] = replace(ours, timeout_s=theirs.timeout_s, retries=retries)
        return self._limited[key]

    def differences(self, cases: Sequence[PlannedCase], *, is_compared: bool) -> Iterator[Difference]:
        """Yield how the definitions of agents differ; equal differences of several cases are one.

        Args:
            cases: the cases of the run, with the agents as the change defines them.
            is_compared: whether this run, or the merge of its shards, is compared with a baseline. Then recorded
                answers cannot replace a live agent: they show nothing of the change.
        """
        groups: dict[tuple[str, str | None, str | None, Effect], list[str]] = {}
        known: dict[tuple[int, int], list[tuple[str, str | None, str | None, Effect]]] = {}
        for item in cases:
            theirs = self.of.get(item.case.id)
            if theirs is None:
                continue
            pair = (id(item.agent), id(theirs))
            if pair not in known:
                known[pair] = list(self._changes(item.agent, theirs, is_compared=is_compared))
            for change in known[pair]:
                groups.setdefault(change, []).append(item.case.id)
        for (name, before, after, effect), ids in groups.items():
            yield Difference(
                kind="agent",
                case=ids[0] if len(ids) == 1 else None,
                cases=len(ids) if len(ids) > 1 else 0,
                setting=name,
                before=before,
                after=after,
                effect=effect,
                loosens=name == "timeout" and _is_longer(before, after),
            )

    def _changes(
        self, ours: AgentSpec, theirs: AgentSpec, *, is_compared: bool
    ) -> Iterator[tuple[str, str | None, str | None, Effect]]:
        for attribute in fields(AgentSpec):
            name = attribute.name
            if AGENT[name].by == "either":
                continue
            old, new = _value(theirs, name, self.paths.worktree), _value(ours, name, self.paths.root)
            if old == new:
                continue
            texts = (None, None) if name in _HIDDEN else (shown(old), shown(new))
            effect: Effect = "base" if AGENT[name].by == "base" else "listed"
            if name == "kind" and ours.kind == REPLAY and is_compared:
                effect = "unproven"
            yield name.removesuffix("_s"), *texts, effect


def _value(agent: AgentSpec, name: str, root: Path) -> Any:
    if name == "timeout_s":
        return agent.limit_s
    if name == "retries":
        return agent.retry_limit
    return _portable(getattr(agent, name), str(root))


def _portable(value: Any, root: str) -> Any:
    """Return a value without the path of its checkout."""
    if isinstance(value, str):
        return "." if value == root else value.replace(f"{root}/", "")
    if isinstance(value, Mapping):
        return {str(key): _portable(item, root) for key, item in value.items()}
    return [_portable(item, root) for item in value] if isinstance(value, list | tuple) else value


def _is_longer(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and float(after) > float(before)


def base_interpreters(agents: Iterable[AgentSpec], paths: Paths) -> Mapping[str, str]:
    """Return the Python of the base commit's graders, by directory.

    Args:
        agents: the base commit's agents.
        paths: where a file of the repository is in the base commit's files.
    """
    return {folder: _installed(Path(program), paths) for folder, program in interpreters_of(agents).items()}


def _installed(program: Path, paths: Paths) -> str:
    """Return an interpreter of the base commit; a virtual environment is in no commit, so that of the checkout."""
    return str(program if program.exists() else paths.here(program))
