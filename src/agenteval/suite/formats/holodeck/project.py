"""A HoloDeck agent with its ``.env`` files, ``config.yaml`` and ``agent.yaml``, described as an agent of a suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agenteval.core.document import Document, VariableProblem, dotted, environment_with
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import boundary
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import add_secrets, is_secret_name
from agenteval.core.text import did_you_mean, working_directory_beside
from agenteval.core.validation import validate
from agenteval.core.yaml import read_yaml
from agenteval.suite.agent_definitions import HOLODECK_AGENT, MODEL_AGENT, HolodeckProject, ModelAgentSpec
from agenteval.suite.cases import is_file
from agenteval.suite.formats.base import EnvFiles
from agenteval.suite.formats.holodeck.agent import model_agent, plain_json, validate_file, written_secrets
from agenteval.suite.formats.holodeck.schema import ONLY_HOLODECK, AgentFile, Execution, HoloDeckModel
from agenteval.suite.model import AgentSpec


def holodeck_home() -> Path | None:
    """Return ``~/.holodeck``; ``None`` without a home directory, or if only files of the workspace are read."""
    if boundary().roots:
        return None
    try:
        return Path.home() / ".holodeck"
    except RuntimeError:
        return None


# The ``.env`` files of a HoloDeck project: variables that the environment does not have.
#
# They are for ``${VAR}`` in the files of the project and for the processes of its agent and its graders. The process
# of agenteval does not get them, so that a change cannot configure it, and they never replace a variable of the
# environment.


NAME = ".env"


def read_env_files(directory: Path, shown_in: str) -> EnvFiles:
    """Read the files of the working directory, a project and the user, in this order; the first value counts."""
    return EnvFiles.read(_env_files(directory.resolve(), Path(shown_in)), first_counts=True)


def _env_files(directory: Path, shown_in: Path) -> Iterator[tuple[Path, str]]:
    home = holodeck_home()
    # Not the working directory itself: for the base commit's files, it belongs to the change.
    here = working_directory_beside(directory, str(shown_in / NAME))
    places = {
        **({} if here is None else {here.resolve(): Path()}),
        directory: shown_in,
        **({} if home is None else {home: Path("~/.holodeck")}),
    }
    for folder, shown in places.items():
        if is_file(folder / NAME):
            yield folder / NAME, str(shown / NAME)


# HoloDeck's ``config.yaml``: defaults for the projects of a directory or of a user.
#
# A project's file is beside its ``agent.yaml``, the user's in ``~/.holodeck``. Values of the project precede those of
# the user, and those of ``agent.yaml`` precede both.


# HoloDeck prefers the first.
NAMES = ("config.yml", "config.yaml")

CONFIG_CREDENTIALS = (
    "providers.**",
    "vectorstores.**",
    "deployment.**",
    "mcp_servers.*.env.*",
    "mcp_servers.*.headers.*",
)


class GlobalConfigFile(BaseModel):
    """The keys of ``config.yaml``; each tool of ``mcp_servers`` is checked with the tools of the agent."""

    model_config = ConfigDict(extra="forbid")

    providers: dict[str, HoloDeckModel] | None = None
    vectorstores: dict[str, Any] | None = None
    execution: Execution | None = None
    deployment: Any = None
    mcp_servers: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class GlobalConfig:
    """The merged content of the configuration files."""

    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def provider_key(self, provider: Any) -> str | None:
        """Return the key of a provider's entry: the key with its name, else the first entry for it."""
        entries = self.content.get("providers") or {}
        if provider in entries:
            return str(provider)
        return next((key for key, entry in entries.items() if entry.get("provider") == provider), None)

    def filled(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of an ``agent.yaml`` with the defaults of this configuration."""
        if not self.content:
            return dict(data)
        result = {**data, **self._with_model(data)}
        if isinstance(evaluations := data.get("evaluations"), dict):
            result["evaluations"] = {**evaluations, **self._with_model(evaluations)}
        execution = {**(self.content.get("execution") or {}), **_present(data.get("execution"))}
        if execution and isinstance(data.get("execution", {}), dict | None):
            result["execution"] = execution
        servers = self.content.get("mcp_servers") or []
        if servers and isinstance(tools := data.get("tools") or [], list):
            names = {tool.get("name") for tool in tools if isinstance(tool, dict)}
            result["tools"] = [*tools, *(server for server in servers if server.get("name") not in names)]
        return result

    def _with_model(self, holder: Mapping[str, Any]) -> dict[str, Any]:
        model = holder.get("model")
        key = self.provider_key(model.get("provider")) if isinstance(model, dict) else None
        if key is None or not isinstance(model, dict):
            return {}
        return {"model": {**self.content["providers"][key], **model}}


def read_global_config(directory: Path, shown_in: str, variables: Mapping[str, str]) -> GlobalConfig:
    """Read the configuration files of a project."""
    found = [_read(path, name, variables) for path, name in _config_files(directory, shown_in)]
    content: dict[str, Any] = {}
    for config in found:
        _merge(content, config.content)
    return GlobalConfig(
        content=content,
        problems=tuple(problem for config in found for problem in config.problems),
        warnings=tuple(warning for config in found for warning in config.warnings),
        secrets=frozenset().union(*(config.secrets for config in found)),
    )


def _config_files(directory: Path, shown_in: str) -> Iterator[tuple[Path, str]]:
    home = holodeck_home()
    places = [(home, "~/.holodeck")] if home is not None else []
    for folder, shown in (*places, (directory, shown_in)):
        name = next((name for name in NAMES if is_file(folder / name)), None)
        if name is not None:
            yield folder / name, str(Path(shown, name))


def _read(path: Path, name: str, variables: Mapping[str, str]) -> GlobalConfig:
    unset: list[Problem] = []
    try:
        environment = environment_with(variables)
        document = read_yaml(
            path, shown_as=name, environment=environment, unset=unset, credentials=CONFIG_CREDENTIALS
        )
    except ConfigError as error:
        return GlobalConfig(problems=tuple(error.problems))
    data, allowed = document.data, GlobalConfigFile.model_fields
    if not isinstance(data, dict) or allowed.keys().isdisjoint(data):
        # Another program's file.
        return GlobalConfig()
    known = {key: value for key, value in data.items() if key in allowed and value is not None}
    entry, problems = validate(GlobalConfigFile, known, document)
    return GlobalConfig(
        content={} if entry is None else known,
        problems=(*unset, *problems),
        warnings=(*document.warnings, *_unknown(data, allowed, document)),
        secrets=document.secrets,
    )


def _unknown(data: Mapping[Any, Any], allowed: Iterable[str], document: Document) -> Iterator[str]:
    for key in data:
        if key not in allowed:
            message = f"HoloDeck has no such key; it is not used{did_you_mean(str(key), allowed)}"
            yield str(document.problem((key,), message))


def _present(section: Any) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None} if isinstance(section, dict) else {}


def _merge(base: dict[str, Any], override: Mapping[str, Any]) -> None:
    """Merge mappings key by key; other values replace each other."""
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = dict(base[key])
            _merge(base[key], value)
        else:
            base[key] = value


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
    """An ``agent.yaml`` with what it depends on."""

    document: Document
    entry: AgentFile
    config: GlobalConfig
    env: EnvFiles
    reasons: Reasons

    def agent(self) -> AgentSpec | None:
        """Return the agent; ``None`` if the file describes none. HoloDeck runs it if it has a tool only there."""
        if self.entry.model is None or self.entry.instructions is None:
            return None
        special = [index for index, tool in enumerate(self.entry.tools or ()) if tool.type in ONLY_HOLODECK]
        if special:
            return self._spec(HOLODECK_AGENT, self.document.file, self.project(), ("tools", special[0]))
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
        return AgentSpec(
            kind=kind,
            target=target,
            directory=str(self.document.directory),
            timeout_s=(self.entry.execution.llm_timeout if self.entry.execution else None) or _TURN_TIMEOUT_S,
            env=self.env.variables,
            options={"agent": agent},
            where=self.document.place(at),
        )


def read_project(path: Path, shown_as: str) -> HolodeckProject:
    """Read the agent of an ``agent.yaml`` for HoloDeck, without its evaluation."""
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
