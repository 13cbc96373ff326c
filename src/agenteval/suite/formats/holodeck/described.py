"""The agent that a HoloDeck ``agent.yaml`` describes, and the reasons why it cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval.core.document import Document, VariableProblem, dotted, environment_with
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass
from agenteval.core.secrets import add_secrets, is_secret_name
from agenteval.core.yaml import read_yaml
from agenteval.suite.agent_definitions import HOLODECK_AGENT, MODEL_AGENT, HolodeckProject, ModelAgentSpec
from agenteval.suite.formats.base import EnvFiles
from agenteval.suite.formats.holodeck.agent import model_agent, plain_json, validate_file, written_secrets
from agenteval.suite.formats.holodeck.project import (
    GlobalConfig,
    read_env_files,
    read_global_config,
)
from agenteval.suite.formats.holodeck.schema import INDEXED, AgentFile
from agenteval.suite.model import AgentSpec

# For a whole turn, which may have many calls; each call has a separate limit.
_TURN_TIMEOUT_S = 300.0

# Keys of agent.yaml and config.yaml that concern the evaluation; all others describe the agent.
_OF_SUITE = frozenset({"evaluations", "test_cases", "test_cases_file", "agent", "name", "execution"})

# Keys of the agent that only HoloDeck reads. Real files have credentials there.
_OF_TOOLS = ("database", "context_model", "keyword_index")
OF_HOLODECK = (
    "embedding_provider",
    "claude",
    "openai",
    "observability",
    "deployment",
    *(f"tools.*.{key}" for key in _OF_TOOLS),
)

#: Keys that take credentials.
CREDENTIALS = (
    "model.**",
    "tools.*.env.*",
    "tools.*.headers.*",
    "tools.*.model.**",
    *(f"{section}.**" for section in OF_HOLODECK),
)
_ADDRESSES = frozenset({"connection_string", "authorization", "cookie"})


@dataclass(frozen=True)
class Reasons:
    """Variables that are missing or refused, by what needs them.

    Attributes:
        suite: the evaluation cannot run.
        agent: neither agenteval nor HoloDeck can run the agent.
        holodeck: HoloDeck cannot run the agent.
    """

    suite: tuple[Problem, ...] = ()
    agent: tuple[Problem, ...] = ()
    holodeck: tuple[Problem, ...] = ()
    judge: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, problems: Iterable[Problem], data: Mapping[str, Any], file: str, config: GlobalConfig) -> Reasons:
        """Sort problems."""
        sorted_: dict[str, list[Problem]] = {"suite": [], "agent": [], "holodeck": [], "judge": []}
        for problem in problems:
            for name in _needed_by(problem, data, file, config):
                sorted_[name].append(problem)
        # A text with a variable is often no valid value either.
        unset = {
            dotted(item.at)
            for name in ("agent", "holodeck")
            for item in sorted_[name]
            if isinstance(item, VariableProblem)
        }
        suite = [item for item in sorted_["suite"] if isinstance(item, VariableProblem) or item.path not in unset]
        return cls(tuple(suite), *(tuple(sorted_[name]) for name in ("agent", "holodeck", "judge")))


def sections_with_variables(problems: Iterable[Problem]) -> frozenset[str | int]:
    """Return the keys of the agent, besides its model and prompt, in which a variable is missing or refused."""
    found = {problem.at[0] for problem in problems if isinstance(problem, VariableProblem) and problem.at}
    return frozenset(found - _OF_SUITE - {"model", "instructions"})


def _needed_by(problem: Problem, data: Mapping[str, Any], file: str, config: GlobalConfig) -> tuple[str, ...]:
    if not isinstance(problem, VariableProblem) or not problem.at or problem.at[0] in _OF_SUITE:
        return ("suite",)
    section = problem.at[0]
    if problem in config.problems:
        if section != "providers":
            return ("agent",) if section == "mcp_servers" else ("holodeck",)
        return _users_of_provider(problem.at, data, config)
    if problem.file != file or section not in AgentFile.model_fields:
        return ("suite",)
    if section == "model":
        return ("agent", "judge")
    only_holodeck = section in OF_HOLODECK or (section == "tools" and any(key in problem.at for key in _OF_TOOLS))
    return ("holodeck",) if only_holodeck else ("agent",)


def _users_of_provider(at: tuple[str | int, ...], data: Mapping[str, Any], config: GlobalConfig) -> tuple[str, ...]:
    evaluations = data.get("evaluations")
    judge = evaluations.get("model") if isinstance(evaluations, dict) else None
    users: list[str] = []
    if _provider(judge, config) == at[1]:
        users.append("suite")
    if _provider(data.get("model"), config) == at[1]:
        users += ["agent", "judge"]
    return tuple(users)


def _provider(model: Any, config: GlobalConfig) -> str | None:
    return config.provider_key(model.get("provider")) if isinstance(model, dict) else None


@dataclass(frozen=True)
class Described:
    """An ``agent.yaml`` with what it depends on.

    Attributes:
        entry: its content, with the defaults of the configuration.
        env: the ``.env`` files.
        reasons: why parts of it cannot run.
    """

    document: Document
    entry: AgentFile
    config: GlobalConfig
    env: EnvFiles
    reasons: Reasons

    def agent(self) -> AgentSpec | None:
        """Return the agent; ``None`` if the file describes none. HoloDeck runs it if it searches documents."""
        if self.entry.model is None or self.entry.instructions is None:
            return None
        indexed = [index for index, tool in enumerate(self.entry.tools or ()) if tool.type in INDEXED]
        if indexed:
            return self._spec(HOLODECK_AGENT, self.document.file, self.project(), ("tools", indexed[0]))
        agent = model_agent(self.entry, self.document, self.reasons.agent, self.env.variables)
        return self._spec(MODEL_AGENT, agent.model.label, agent, ("model",))

    def project(self) -> HolodeckProject:
        """Return the agent for HoloDeck."""
        model = self.entry.model
        return HolodeckProject(
            agent=plain_json(dict(_of_agent(self.document.data))),
            config=plain_json(self.config.content),
            directory=str(self.document.directory),
            variables=self.env.variables,
            model=f"{model.provider}/{model.name}" if model else "",
            problems=(*self.reasons.agent, *self.reasons.holodeck),
        )

    def secrets_of(self, agent: ModelAgentSpec | HolodeckProject | None) -> frozenset[str]:
        """Return keys and tokens that the files contain; they are as secret as those of the environment."""
        found = self.document.secrets | self.config.secrets | self.env.secrets | set(_secrets(self.config.content))
        if agent is None:
            return found
        return found | (set(_secrets(agent.agent)) if isinstance(agent, HolodeckProject) else written_secrets(agent))

    def _spec(self, kind: str, target: str, agent: Any, at: tuple[str | int, ...]) -> AgentSpec:
        line = self.document.line(at)
        return AgentSpec(
            kind=kind,
            target=target,
            directory=str(self.document.directory),
            timeout_s=(self.entry.execution.llm_timeout if self.entry.execution else None) or _TURN_TIMEOUT_S,
            env=self.env.variables,
            options={"agent": agent},
            where=f"{self.document.file}:{line}" if line else self.document.file,
        )


def read_project(path: Path, shown_as: str) -> HolodeckProject:
    """Read the agent of an ``agent.yaml`` for HoloDeck, without its evaluation.

    Raises:
        ConfigError: the file describes no agent, or it has mistakes.
    """
    directory = path.resolve().parent
    env = read_env_files(directory, str(Path(shown_as).parent))
    problems: list[Problem] = []
    environment = environment_with(env.variables)
    document = read_yaml(path, shown_as=shown_as, environment=environment, unset=problems, credentials=CREDENTIALS)
    config = read_global_config(directory, str(Path(shown_as).parent), env.variables)
    if not isinstance(document.data, dict):
        raise ConfigError(document.problem((), "must be a mapping with `model` and `instructions`"))
    data = dict(_of_agent(document.data))
    entry, found = validate_file(config.filled(data), document)
    problems = [
        problem for problem in problems if not (isinstance(problem, VariableProblem) and _is_of_suite(problem))
    ]
    reasons = Reasons.of([*problems, *config.problems, *found], document.data, shown_as, config)
    wrong = list(dict.fromkeys((*reasons.suite, *reasons.agent, *reasons.holodeck)))
    if not wrong and (entry is None or entry.model is None or entry.instructions is None):
        wrong.append(document.problem((), "describes no agent; add `model` and `instructions`"))
    if wrong or entry is None:
        raise ConfigError(wrong)
    described = Described(document, entry, config, env, reasons)
    project = described.project()
    add_secrets(described.secrets_of(project))
    return project


def _is_of_suite(problem: Problem) -> bool:
    return isinstance(problem, VariableProblem) and bool(problem.at) and problem.at[0] in _OF_SUITE


def _of_agent(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of an ``agent.yaml`` that describe the agent, in HoloDeck's form."""
    yield "name", str(data.get("name") or "agent")
    for key, value in data.items():
        if key in _OF_SUITE - {"execution"}:
            continue
        if key == "instructions" and isinstance(value, str):
            yield key, {"inline": value}
        elif key == "tools" and isinstance(value, list):
            yield key, [_tool(tool) for tool in value]
        else:
            yield key, value


def _tool(tool: Any) -> Any:
    if isinstance(tool, dict) and tool.get("type") == "function":
        return {key: value for key, value in tool.items() if key != "is_retrieval"}
    return tool


def _secrets(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _secrets(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, key)
    elif isinstance(value, str) and (is_secret_name(key) or key.lower() in _ADDRESSES):
        yield value
