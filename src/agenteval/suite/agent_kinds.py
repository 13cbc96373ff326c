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

from agenteval.core.paths import is_too_long
from agenteval.suite.command_line import check_arguments
from agenteval.suite.http_keys import HttpKeys, http_options
from agenteval.suite.reply_keys import Reply, Response, ResponsePath, reply_options

#: The kind that answers from a recording.
REPLAY = "replay"

_INTERPRETER = "python, holodeck, kind: the interpreter of the agent's environment"
Target = str | tuple[str, ...]
_CALLABLE = re.compile(r"([A-Za-z_][\w.]*|[^:]*[^:/]\.py):[A-Za-z_][\w.]*")


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CommandKeys(_Keys):
    """Keys of a program that is started for every turn."""

    command: list[str] | None = Field(
        None,
        description="argv; `{input}` in an argument is the input, else stdin has the JSON request; reply on stdout",
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


class PythonKeys(_Keys):
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


class ReplayKeys(_Keys):
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


class HolodeckKeys(_Keys):
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
        name: value of ``AgentSpec.kind`` and of ``type`` in files.
        agent: ``module:class`` of the ``Agent``; the arguments are the specification and, if parameters have these
            names, ``concurrency``, ``gateway`` and ``listener``.
        keys: its keys in YAML; the first one gives the target. ``None``: files cannot name this kind.
        target: makes the target from the keys' values and the file's directory; default: the first key's value.
        options: makes ``AgentSpec.options`` from the same values.
        aliases: other names of that first key.
        tool: ``module:class`` of the ``Caller`` for tools under test; ``None``: the kind cannot be a tool.
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
        tool="agenteval.agents.tool:CommandCaller",
        is_local=True,
    ),
    AgentKind(
        "http",
        "agenteval.agents.http.agent:HttpAgent",
        HttpKeys,
        aliases=("url",),
        target=lambda keys, _directory: keys.http or keys.url,
        options=lambda keys, _directory: http_options(keys),
        tool="agenteval.agents.tool:HttpCaller",
    ),
    AgentKind(
        "python",
        "agenteval.agents.python:PythonAgent",
        PythonKeys,
        options=lambda keys, directory: {**reply_options(keys), **_interpreter(keys, directory)},
        tool="agenteval.agents.tool:PythonCaller",
        is_local=True,
    ),
    AgentKind(
        REPLAY,
        "agenteval.agents.replay.agent:ReplayAgent",
        ReplayKeys,
        target=lambda keys, directory: str(directory / keys.replay),
        is_local=True,
    ),
    AgentKind(
        "holodeck",
        "agenteval.agents.holodeck:HolodeckAgent",
        HolodeckKeys,
        target=lambda keys, directory: str(directory / keys.holodeck),
        options=_interpreter,
    ),
    AgentKind(
        "plugin",
        "agenteval.agents.plugin:PluginAgent",
        PluginKeys,
        options=lambda keys, directory: {"options": keys.options or {}, **_interpreter(keys, directory)},
        is_local=True,
    ),
    # Suites, source code and library callers define these kinds; agenteval.yaml cannot.
    AgentKind("model", "agenteval.agents.model.agent:ModelAgent"),
    AgentKind("framework", "agenteval.agents.framework:FrameworkAgent"),
    AgentKind("project_runner", "agenteval.agents.fluxloop:FluxLoopAgent", is_local=True),
    AgentKind("callable", "agenteval.agents.callable:CallableAgent"),
)
BY_NAME: Mapping[str, AgentKind] = {kind.name: kind for kind in KINDS}
#: Key in YAML → kind.
BY_KEY: Mapping[str, AgentKind] = {kind.key: kind for kind in KINDS if kind.key is not None}
TOOL_SUFFIX = "_tool"
