"""Which fields of agents and settings the base commit decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agenteval.core.records import dataclass, field, fields, replace
from agenteval.gate.integrity.differences import shown
from agenteval.results.model import Difference, Effect
from agenteval.run.config import Config
from agenteval.run.confirm.control import Paths
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.agents import interpreters_of
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec

# Says who decides each field that a change can write: the base commit, the change, or that it does not matter.
#
# A test compares these tables with the models. A new field needs an entry here, and the code that the entry promises.
# The inputs of the action are in the workflow file, whose changes are listed. Files that they name are read in the
# base commit.


@dataclass(frozen=True)
class Standing:
    """Who decides the value of a field in a run that a base commit judges.

    Attributes:
        by: ``base``: the value of the base commit counts. ``change``: that of the change, and the list shows it.
            ``either``: that of the change, which cannot change a verdict.
        why: the reason, if the base commit does not decide.
    """

    by: Literal["base", "change", "either"]
    why: str = ""


BASE = Standing("base")
_TESTED = Standing("change", "it defines the agent, which the run evaluates")
_LABEL = Standing("either", "it is a name or a place for people")
_SPEED = Standing("either", "it changes how fast a run is, not what is asked and how it is scored")
_PROGRAM = Standing("either", "files cannot contain it: a program sets it, and such a run has no base commit")

#: ``agenteval.yaml``, by the dotted path of the key.
CONFIGURATION: Mapping[str, Standing] = {
    "agents": Standing("change", "by key, as in `AGENT`"),
    "tools": Standing("change", "by key, as in `AGENT`"),
    "judge": BASE,
    "embeddings": BASE,
    "metrics": BASE,
    "criteria": BASE,
    "personas": BASE,
    "tags": BASE,
    "iterations": BASE,
    "concurrency": _SPEED,
    "case_timeout": BASE,
    "time_limit": Standing("either", "a run that it ends is unproven"),
    "pass_env": Standing("change", "it adds variables to the agent and to graders, and changes no rule"),
    "secrets": Standing("either", "it only masks more"),
    "limits.memory_mb": BASE,
    "limits.cpu_s": BASE,
    "max_answer_bytes": Standing("either", "metrics read the whole answer"),
    "templates.comment": BASE,
    "templates.summary": BASE,
    "reports": Standing("either", "they are written after the decision, into separate files"),
    **{
        f"gate.{name}": BASE
        for name in (
            "fail_on",
            "max_error_rate",
            "strict",
            "must_pass",
            "quarantine",
            "metrics",
            "resources",
            "pairs",
            "first",
            "require",
            "on_missing_baseline",
        )
    },
    "llm.max_calls": BASE,
    "llm.max_cost_usd": BASE,
    "llm.cache": Standing("either", "a reply in it is used only if this repository's key has sealed it"),
    "llm.cache_agents": BASE,
    "llm.concurrency": _SPEED,
    "llm.requests_per_minute": _SPEED,
    "llm.retries": BASE,
    "llm.backoff": _SPEED,
    "llm.timeout": BASE,
}

#: The definition of an agent or a tool, by the attribute of `AgentSpec`. The interpreter is an option; that of
#: graders is the base commit's.
AGENT: Mapping[str, Standing] = {
    "kind": _TESTED,
    "target": _TESTED,
    "directory": _TESTED,
    "timeout_s": BASE,
    "concurrency": _SPEED,
    "retries": BASE,
    "config": _TESTED,
    "env": _TESTED,
    "options": _TESTED,
    "where": _LABEL,
    "function": _PROGRAM,
    "control": BASE,
}

#: A suite, by the attribute of `Suite`, to which all formats convert their files.
SUITE: Mapping[str, Standing] = {
    "path": Standing("either", "cases are paired by their content too, and keep the rules of the suite they were in"),
    "name": _LABEL,
    "format": _LABEL,
    "cases": Standing("change", "case by case: removed, renamed, edited and new ones are listed"),
    "root": _TESTED,
    "agent": _TESTED,
    "fallback_agent": _TESTED,
    "concurrency": _SPEED,
    "iterations": BASE,
    "turn_timeout_s": BASE,
    "retrieval_tools": BASE,
    "metrics": BASE,
    "aggregate": BASE,
    "evaluation": BASE,
    "warnings": _LABEL,
    "secrets": Standing("either", "it only masks more"),
}

#: A case that the base commit has too, by the attribute of `Case`.
CASE: Mapping[str, Standing] = {
    "id": Standing("change", "a renamed case is listed; the patterns of the base commit also match its old id"),
    "name": Standing("either", "the patterns of the base commit also match its old name"),
    "turns": BASE,
    "tags": BASE,
    "cluster": BASE,
    "line": _LABEL,
    "iterations": BASE,
    "metrics": BASE,
    "strict": BASE,
    "target": _TESTED,
    "persona": BASE,
    "aggregate": BASE,
}

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
        paths: where a file of the repository is in the base commit's files.
    """
    return {folder: _installed(Path(program), paths) for folder, program in interpreters_of(agents).items()}


def _installed(program: Path, paths: Paths) -> str:
    """Return an interpreter of the base commit; a virtual environment is in no commit, so that of the checkout."""
    return str(program if program.exists() else paths.here(program))


# Larger values of these settings make it easier to pass.
_LOOSER_IF_MORE = frozenset(
    {
        "case_timeout",
        "limits.memory_mb",
        "limits.cpu_s",
        "llm.retries",
        "llm.timeout",
        "gate.max_error_rate",
    }
)
_LOOSER_IF_LESS = frozenset({"gate.pairs"})
_LOOSER = {"gate.strict": False, "gate.require": None, "gate.on_missing_baseline": "warn"}
# These are compared case by case.
_OF_CASES = frozenset({"iterations"})


def setting_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings of the run as a whole that differ, and affect the verdict or how it is shown.

    Args:
        before: the configuration of the base commit that decides about the run.
    """
    yield from _written(before, after, of_run=True)


def suite_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings for the suites of a configuration that differ, and affect the verdict."""
    for name in ("judge", "embeddings"):
        if getattr(before, name) != getattr(after, name):
            yield _difference(name, getattr(before, name), getattr(after, name))
    yield from _written(before, after, of_run=False)


def _written(before: Config, after: Config, *, of_run: bool) -> Iterator[Difference]:
    from agenteval.run.config_file import RUN_KEYS, ConfigFile, written_settings

    defaults = written_settings(ConfigFile())
    for name, default in defaults.items():
        old, new = before.written.get(name, default), after.written.get(name, default)
        is_listed = CONFIGURATION[name].by != "either" and name not in _OF_CASES
        if is_listed and old != new and (name.partition(".")[0] in RUN_KEYS) == of_run:
            yield _difference(name, old, new)


def _difference(name: str, before: Any, after: Any) -> Difference:
    return Difference(
        kind="setting",
        setting=name,
        before=shown(before),
        after=shown(after),
        effect="base" if CONFIGURATION[name].by == "base" else "listed",
        loosens=_loosens(name, before, after),
    )


def _loosens(name: str, before: Any, after: Any) -> bool:
    """Return whether the new value of a setting makes it easier to pass."""
    if name in {"gate.fail_on", "gate.must_pass"}:
        return not set(before) <= set(after)
    if name in {"gate.quarantine", "gate.metrics"}:
        return bool(after) and before != after
    if name in _LOOSER:
        return bool(after == _LOOSER[name])
    if name in _LOOSER_IF_MORE:
        return after is None or (before is not None and after > before)
    return name in _LOOSER_IF_LESS and (after is None or (before is not None and after < before))


def criteria_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the conditions on whole runs that differ.

    Args:
        before: the criteria of each suite of the change in the base commit, by its path; ``None`` without any.
    """
    found: dict[Difference, None] = {}
    for path, old in before.items():
        new = after.get(path)
        if old != new:
            texts = [None if value is None else repr(value) for value in (old, new)]
            difference = _difference("criteria", *texts).model_copy(update={"loosens": new is None})
            found[difference] = None
    yield from found
