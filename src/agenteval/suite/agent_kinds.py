"""The agent kinds: one entry per way to reach an agent, with its keys in YAML and the class that answers.

Classes are named, not imported: they are above this package, and a run pays only for the kinds it uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agenteval.suite.response_path import check_response_path

_INTERPRETER = "python, kind: the interpreter of the agent's environment"
Target = str | tuple[str, ...]
_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CommandKeys(_Keys):
    """Keys of a program that is started for every turn."""

    command: list[str] | None = Field(None, description="argv; one JSON request on stdin, the reply on stdout")

    @field_validator("command", mode="before")
    @classmethod
    def _argv(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("must be a list of arguments, for instance [python, agent.py]: no shell is used")
        if value == []:
            raise ValueError("must name a program")
        return value


class HttpKeys(_Keys):
    """Keys of an address that requests are sent to."""

    http: str | None = Field(None, description="URL that requests are POSTed to")
    url: str | None = Field(None, description="the same as `http`")
    headers: dict[str, str] | None = Field(None, repr=False, description="http: request headers")
    response_path: str | None = Field(None, description="http: path of the answer in a response of another form")

    @field_validator("http", "url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^\s/]", value):
            raise ValueError(f"{value!r} is not an http:// or https:// address")
        return value

    @field_validator("response_path")
    @classmethod
    def _path(cls, value: str | None) -> str | None:
        return value if value is None else check_response_path(value)


class PythonKeys(_Keys):
    """Keys of a Python callable."""

    python: str | None = Field(None, description="`module:callable`, run in a worker process")
    interpreter: str | None = Field(None, description=_INTERPRETER)

    @field_validator("python")
    @classmethod
    def _callable(cls, value: str | None) -> str | None:
        if value is not None and not _CALLABLE.fullmatch(value):
            example = "for instance agent:reply for the function reply in agent.py"
            raise ValueError(f"{value!r} is not of the form module:callable, {example}")
        return value


class ReplayKeys(_Keys):
    """Keys of recorded answers."""

    replay: str | None = Field(
        None,
        description="recorded answers: results.json or its folder, JSON Lines of replies, or OpenTelemetry traces",
    )


class PluginKeys(_Keys):
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
        name: as ``AgentSpec.kind`` and ``type`` name it.
        agent: ``module:class`` of the ``Agent``; called with the specification and, where its parameters name them,
            ``concurrency`` and ``gateway``.
        keys: its keys in YAML; the first one gives the target. ``None``: files cannot name this kind.
        target: makes the target of the keys' values and the file's directory; by default the first key's value.
        options: makes ``AgentSpec.options`` of the same.
        aliases: other names of that first key.
        tool: ``module:class`` of the ``Caller`` for tools under test; ``None``: it cannot be a tool.
        is_local: starting the agent checks it before a run, and reaches nothing outside this machine.
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
    """A path is relative to the file; a name without a slash is looked up on PATH."""
    name = keys.interpreter
    return {"interpreter": str(directory / name) if "/" in name else name} if name else {}


KINDS = (
    AgentKind(
        "command",
        "agenteval.agents.command:CommandAgent",
        CommandKeys,
        target=lambda keys, _directory: tuple(keys.command),
        tool="agenteval.agents.tool:CommandCaller",
        is_local=True,
    ),
    AgentKind(
        "http",
        "agenteval.agents.http.agent:HttpAgent",
        HttpKeys,
        aliases=("url",),
        target=lambda keys, _directory: keys.http or keys.url,
        options=lambda keys, _directory: {"headers": keys.headers or {}, "response_path": keys.response_path},
        tool="agenteval.agents.tool:HttpCaller",
    ),
    AgentKind(
        "python",
        "agenteval.agents.python:PythonAgent",
        PythonKeys,
        options=_interpreter,
        tool="agenteval.agents.tool:PythonCaller",
        is_local=True,
    ),
    AgentKind(
        "replay",
        "agenteval.agents.replay.agent:ReplayAgent",
        ReplayKeys,
        target=lambda keys, directory: str(directory / keys.replay),
        is_local=True,
    ),
    AgentKind(
        "plugin",
        "agenteval.agents.plugin:PluginAgent",
        PluginKeys,
        options=lambda keys, directory: {"options": keys.options or {}, **_interpreter(keys, directory)},
        is_local=True,
    ),
    # Suites, source code and callers of the library describe these, not agenteval.yaml.
    AgentKind("model", "agenteval.agents.model.agent:ModelAgent"),
    AgentKind("framework", "agenteval.agents.framework:FrameworkAgent"),
    AgentKind("callable", "agenteval.agents.callable:CallableAgent"),
)
BY_NAME: Mapping[str, AgentKind] = {kind.name: kind for kind in KINDS}
#: Key in YAML → kind.
BY_KEY: Mapping[str, AgentKind] = {kind.key: kind for kind in KINDS if kind.key is not None}
TOOL_SUFFIX = "_tool"
