"""Agents of suites: their kinds, and how to reach them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.text import is_too_long, join_choices
from agenteval.core.validation import Duration, validate
from agenteval.suite.agent_keys import (
    FOREIGN_KEYS,
    INPUT,
    HttpKeys,
    Reply,
    Response,
    ResponsePath,
    check_arguments,
    http_options,
    placeholders,
    reply_options,
    reply_problem,
    takes_input,
)
from agenteval.suite.model import AgentSpec, Count

# The agent kinds: one entry per way to reach an agent, with its keys in YAML and the class that answers.
#
# Classes are named, not imported: they are above this package, and a run pays only for the kinds it uses.


#: The kind that answers from a recording.
REPLAY = "replay"

_INTERPRETER = "python, holodeck, kind: the interpreter of the agent's environment"
Target = str | tuple[str, ...]
_CALLABLE = re.compile(r"([A-Za-z_][\w.]*|[^:]*[^:/]\.py):[A-Za-z_][\w.]*")


class _KindKeys(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CommandKeys(_KindKeys):
    """Keys of a program that is started for every turn."""

    command: list[str] | None = Field(
        None,
        description="argv; `{input}` is the input, else stdin has the JSON request; reply on stdout",
    )
    reply: Reply = None
    response: Response = None
    response_path: ResponsePath = None

    @field_validator("command", mode="before")
    @classmethod
    def _argv(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("must be a list of arguments, for instance [python, agent.py]: no shell is used")
        if value == []:
            raise ValueError("must name a program")
        return value

    @field_validator("command")
    @classmethod
    def _placeholders(cls, value: list[str] | None) -> list[str] | None:
        check_arguments(value or ())
        return value


class PythonKeys(_KindKeys):
    """Keys of a Python callable."""

    python: str | None = Field(
        None,
        description="`module:name` or `path/file.py:name` of a function, class or agent, run in a worker process",
    )
    reply: Reply = None
    response: Response = None
    response_path: ResponsePath = None
    interpreter: str | None = Field(None, description=_INTERPRETER)

    @field_validator("python")
    @classmethod
    def _callable(cls, value: str | None) -> str | None:
        if value is not None and not _CALLABLE.fullmatch(value):
            example = "for instance agent:reply or agent.py:reply for the function reply in agent.py"
            raise ValueError(f"{value!r} is not of the form module:name, {example}")
        return value


class ReplayKeys(_KindKeys):
    """Keys of recorded answers."""

    replay: str | None = Field(
        None,
        description="recorded answers: results.json or its folder, JSON Lines of replies, or OpenTelemetry traces",
    )

    @field_validator("replay")
    @classmethod
    def _file(cls, value: str | None) -> str | None:
        if value == "":
            raise ValueError("needs a file or a folder with recorded answers, for instance answers.jsonl")
        if value is not None and is_too_long(value):
            raise ValueError("is too long for a path")
        return value


class HolodeckKeys(_KindKeys):
    """Keys of a HoloDeck project whose agent HoloDeck itself runs."""

    holodeck: str | None = Field(None, description="agent.yaml of an agent that HoloDeck itself runs")
    interpreter: str | None = Field(None, description=_INTERPRETER)

    # The keys of all kinds become one model, in which a validator of another kind with the same name would be lost.
    @field_validator("holodeck")
    @classmethod
    def _project_file(cls, value: str | None) -> str | None:
        if value is not None and not value.endswith((".yaml", ".yml")):
            raise ValueError(f"{value!r} is not a YAML file; name the agent.yaml of the project")
        return value


class PluginKeys(_KindKeys):
    """Keys of an agent kind that another distribution registers."""

    kind: str | None = Field(None, description="agent kind that an installed package registers, like acme.a2a")
    options: dict[str, Any] | None = Field(None, repr=False, description="kind: options of that agent kind")
    interpreter: str | None = Field(None, description=_INTERPRETER)

    @field_validator("kind")
    @classmethod
    def _name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[\w-]+(\.[\w-]+)+", value):
            raise ValueError(
                f"{value!r} is no registered kind: their names contain a dot, like acme.a2a; "
                f"a built-in kind is written as its key, like `command: [python, agent.py]`"
            )
        return value


@dataclass(frozen=True)
class AgentKind:
    """A way to reach an agent.

    Attributes:
        name: value of ``AgentSpec.kind`` and of ``type`` in files.
        agent: ``module:class`` of the ``Agent``; the arguments are the specification and, if parameters have these
            names, ``concurrency``, ``gateway`` and ``listener``.
        keys: its keys in YAML; the first one gives the target. ``None``: files cannot name this kind.
        target: makes the target from the keys' values and the file's directory; default: the first key's value.
        options: makes ``AgentSpec.options`` from the same values.
        tool: ``module:class`` of the ``ToolAgent`` for tools under test; ``None``: the kind cannot be a tool.
        is_local: whether starting the agent checks it before a run and connects to no other machine.
    """

    name: str
    agent: str
    keys: type[BaseModel] | None = None
    target: Callable[[Any, Path], Target] | None = None
    options: Callable[[Any, Path], Mapping[str, Any]] = lambda _keys, _directory: {}
    aliases: tuple[str, ...] = ()
    tool: str | None = None
    is_local: bool = False

    @property
    def key(self) -> str | None:
        """The key that gives the target."""
        return None if self.keys is None else next(iter(self.keys.model_fields))

    @property
    def target_keys(self) -> tuple[str, ...]:
        """The key that gives the target, and its other names."""
        return () if self.key is None else (self.key, *self.aliases)


def _interpreter(keys: Any, directory: Path) -> dict[str, Any]:
    """Return the path of an interpreter, relative to the file; a name without a slash is searched on PATH."""
    name = keys.interpreter
    return {"interpreter": str(directory / name) if "/" in name else name} if name else {}


KINDS = (
    AgentKind(
        "command",
        "agenteval.agents.command:CommandAgent",
        CommandKeys,
        target=lambda keys, _directory: tuple(keys.command),
        options=lambda keys, _directory: reply_options(keys),
        tool="agenteval.agents.tool:CommandTool",
        is_local=True,
    ),
    AgentKind(
        "http",
        "agenteval.agents.http_agent:HttpAgent",
        HttpKeys,
        aliases=("url",),
        target=lambda keys, _directory: keys.http or keys.url,
        options=lambda keys, _directory: http_options(keys),
        tool="agenteval.agents.tool:HttpTool",
    ),
    AgentKind(
        "python",
        "agenteval.agents.python:PythonAgent",
        PythonKeys,
        options=lambda keys, directory: {**reply_options(keys), **_interpreter(keys, directory)},
        tool="agenteval.agents.tool:PythonTool",
        is_local=True,
    ),
    AgentKind(
        REPLAY,
        "agenteval.agents.replay_agent:ReplayAgent",
        ReplayKeys,
        target=lambda keys, directory: str(directory / keys.replay),
        is_local=True,
    ),
    AgentKind(
        "holodeck",
        "agenteval.agents.python:HolodeckAgent",
        HolodeckKeys,
        target=lambda keys, directory: str(directory / keys.holodeck),
        options=_interpreter,
    ),
    AgentKind(
        "plugin",
        "agenteval.agents.python:PluginAgent",
        PluginKeys,
        options=lambda keys, directory: {"options": keys.options or {}, **_interpreter(keys, directory)},
        is_local=True,
    ),
    # Suites, source code and library callers define these kinds; agenteval.yaml cannot.
    AgentKind("model", "agenteval.agents.model_agent:ModelAgent"),
    AgentKind("framework", "agenteval.agents.python:FrameworkAgent"),
    AgentKind("project_runner", "agenteval.agents.python:FluxLoopAgent", is_local=True),
    AgentKind("callable", "agenteval.agents.callable:CallableAgent"),
)
BY_NAME: Mapping[str, AgentKind] = {kind.name: kind for kind in KINDS}
#: Key in YAML → kind.
BY_KEY: Mapping[str, AgentKind] = {kind.key: kind for kind in KINDS if kind.key is not None}
TOOL_SUFFIX = "_tool"

# Reads how to reach an agent: from ``agents:`` in agenteval.yaml, ``agent:`` in a suite, or ``--agent``.
#
# Canonical forms, each with optional ``timeout``, ``concurrency``, ``retries``, ``config`` and ``env``::
#
#     {command: [python, agent.py]}
#     {http: "https://…", headers: {…}, body: {…}, response: {answer: data.answer}}
#     {python: "module:callable", interpreter: .venv/bin/python}
#     {replay: answers.jsonl}
#     {holodeck: agent.yaml}
#     {kind: acme.a2a, options: {…}}


_TEXT_KEYS = ("command", "env", "headers")

#: Keys of an agent or tool under test that take credentials.
CREDENTIALS = ("env.*", "headers.*", "http")


class _CommonKeys(BaseModel):
    """Keys of every agent."""

    timeout: Duration | None = Field(None, description="time for one turn, in seconds or as in 500ms (60)")
    concurrency: Count | None = Field(None, description="conversations with it at once (as many as the run)")
    retries: int | None = Field(
        None, ge=0, le=10, description="retries after a transient failure; default: 2 for http, else 0"
    )
    control: str | None = Field(
        None, description="agent that is a deployment of the base commit, to run beside this one; empty for none"
    )
    config: dict[str, Any] = Field(default_factory=dict, description="free-form values sent with every request")
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="further environment variables")


# In reverse: pydantic puts the fields of the last base first.
_KEYS = tuple(kind.keys for kind in BY_KEY.values() if kind.keys is not None)
_AllKeys: Any = create_model("_AllKeys", __base__=(_CommonKeys, *reversed(_KEYS)))


class AgentEntry(_AllKeys):
    """One agent as it is written in a file."""

    model_config = ConfigDict(extra="forbid")

    type: str | None = Field(None, description="command, http, python, replay or holodeck; follows from the keys")

    @model_validator(mode="after")
    def _one_kind(self) -> AgentEntry:
        keys: Any = self
        if keys.http is not None and keys.url is not None:
            raise ValueError("give `http` or `url`, not both")
        kinds = list(self._kinds())
        if len(kinds) != 1:
            raise ValueError(f"exactly one of {join_choices(BY_KEY)} is needed, {len(kinds) or 'none'} given")
        kind = kinds[0]
        if self.type is not None and self.type != kind.name:
            raise ValueError(f"type is {self.type!r}, but the keys describe an agent of type {kind.name!r}")
        own = kind.keys.model_fields if kind.keys else {}
        for key in _AllKeys.model_fields:
            owners = [kind.name for kind in KINDS if kind.keys is not None and key in kind.keys.model_fields]
            if owners and key not in own and getattr(self, key) is not None:
                raise ValueError(f"`{key}` is for agents of type {' or '.join(owners)}, not {kind.name}")
        if problem := reply_problem(self):
            raise ValueError(problem)
        return self

    def _kinds(self) -> Iterator[AgentKind]:
        for kind in BY_KEY.values():
            if any(getattr(self, key) is not None for key in kind.target_keys):
                yield kind

    @property
    def agent_kind(self) -> AgentKind:
        """The kind that the keys describe."""
        return next(self._kinds())


def read_agent(value: Any, document: Document, at: KeyPath) -> tuple[AgentSpec | None, list[Problem]]:
    """Return one agent entry of a document, or its problems."""
    try:
        written = _long_form(_as_written(value, document, at))
    except ValueError as error:
        return None, [document.problem(at, f"{value!r} cannot be split into arguments: {error}")]
    entry, problems = validate(AgentEntry, written, document, at)
    if entry is None:
        return None, problems
    return _spec(entry, document.directory, document.place((*at, *_target_path(entry, value)))), []


def _target_path(entry: AgentEntry, written: Any) -> KeyPath:
    """Return the path of the program, address or function in an entry, so that messages quote its line."""
    if isinstance(written, list):
        return (0,)
    key = next((key for key in entry.agent_kind.target_keys if getattr(entry, key) is not None), None)
    if key is None or not isinstance(written, dict):
        return ()
    return (key, 0) if isinstance(written.get(key), list) else (key,)


def read_tool(value: Any, document: Document, at: KeyPath) -> tuple[AgentSpec | None, list[Problem]]:
    """Return one entry of ``tools:``, in the form of an agent entry, or its problems."""
    spec, problems = read_agent(value, document, at)
    if spec is None:
        return None, problems
    tools = [kind.name for kind in KINDS if kind.tool is not None]
    if spec.kind not in tools:
        return None, [document.problem(at, f"a tool is one of {join_choices(tools)}, not {spec.kind}")]
    if keys := [key for key in FOREIGN_KEYS if spec.options.get(key) is not None]:
        why = "this key is for agents; a tool receives its arguments as JSON, and all of its result counts"
        return None, [document.problem((*at, key), why) for key in keys]
    if spec.kind == "http" and next(placeholders(spec.target), None):
        return None, [document.problem(at, "the address of a tool cannot contain placeholders")]
    if spec.kind == "command" and takes_input(spec.target):
        message = f"{INPUT} is for agents; a tool reads its arguments as JSON from standard input"
        return None, [document.problem((*at, "command"), message)]
    return replace(spec, kind=spec.kind + TOOL_SUFFIX), []


def agent_from_text(text: str, directory: Path) -> AgentSpec:
    """Return an agent: ``replay:FILE``, ``python:module:name``, ``command:ARGS``, ``kind:NAME``, or a URL."""
    document = Document(file="--agent", directory=directory, data=None)
    spec, problems = read_agent(text, document, ())
    if spec is None:
        raise ConfigError(problems)
    return spec


def is_inline_agent(text: str) -> bool:
    """Return whether a text describes an agent itself, and is not the name of an agent."""
    return text.startswith(("http://", "https://")) or (text.partition(":")[0] in BY_KEY and ":" in text)


def _as_written(value: Any, document: Document, at: KeyPath) -> Any:
    """Return an entry in which arguments, variables and headers have their written form."""
    if isinstance(value, list):
        return document.as_written(value, at)
    if not isinstance(value, dict):
        return value
    return document.texts_as_written(value, at, _TEXT_KEYS)


def _long_form(value: Any) -> Any:
    if isinstance(value, list):
        return {"command": value}
    if not isinstance(value, str):
        return value
    if value.startswith(("http://", "https://")):
        return {"http": value}
    kind, _, target = value.partition(":")
    if kind == "command":
        return {"command": shlex.split(target)}
    return {kind: target} if kind in BY_KEY else {"type": value}


def _spec(entry: Any, directory: Path, where: str) -> AgentSpec:
    kind: AgentKind = entry.agent_kind
    return AgentSpec(
        kind=kind.name,
        target=kind.target(entry, directory) if kind.target else getattr(entry, str(kind.key)),
        directory=str(directory),
        timeout_s=entry.timeout,
        concurrency=entry.concurrency,
        retries=entry.retries,
        config=entry.config,
        env=entry.env,
        options=kind.options(entry, directory),
        where=where,
        control=entry.control,
    )
