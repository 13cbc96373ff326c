"""Reads how an agent is reached: from ``agents:`` in agenteval.yaml, ``agent:`` in a suite, or ``--agent``.

Canonical forms, each with optional ``timeout``, ``concurrency``, ``retries``, ``config`` and ``env``::

    {command: [python, agent.py]}
    {http: "https://…", headers: {…}, response_path: data.answer}
    {python: "module:callable", interpreter: .venv/bin/python}
    {replay: answers.jsonl}
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.documents.validation import validate
from agenteval.core.errors import ConfigError, Problem
from agenteval.suite.model import AgentSpec
from agenteval.suite.response_path import check_response_path

KINDS = ("command", "http", "python", "replay")
TOOL_KINDS = ("command", "http", "python")
_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_TEXT_KEYS = ("command", "env", "headers")


class AgentEntry(BaseModel):
    """One agent as it is written in a file."""

    model_config = ConfigDict(extra="forbid")

    type: str | None = Field(None, description="command, http, python or replay; follows from the keys")
    command: list[str] | None = Field(None, description="argv; one JSON request on stdin, the reply on stdout")
    http: str | None = Field(None, description="URL that requests are POSTed to")
    url: str | None = Field(None, description="the same as `http`")
    python: str | None = Field(None, description="`module:callable`, run in a worker process")
    replay: str | None = Field(
        None,
        description="recorded answers: results.json or its folder, JSON Lines of replies, or OpenTelemetry traces",
    )
    timeout: float | None = Field(None, gt=0, description="seconds for one turn (60)")
    concurrency: int | None = Field(None, ge=1, description="conversations with it at once (as many as the run)")
    retries: int | None = Field(
        None, ge=0, le=10, description="further attempts after a passing failure (2 for http, else 0)"
    )
    config: dict[str, Any] = Field(default_factory=dict, description="free-form values sent with every request")
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="further environment variables")
    headers: dict[str, str] | None = Field(None, repr=False, description="http: request headers")
    response_path: str | None = Field(None, description="http: where the answer stands in a foreign reply")
    interpreter: str | None = Field(None, description="python: the interpreter of the agent's environment")

    @field_validator("command", mode="before")
    @classmethod
    def _argv(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("must be a list of arguments, for instance [python, agent.py]: no shell is used")
        if value == []:
            raise ValueError("must name a program")
        return value

    @field_validator("python")
    @classmethod
    def _callable(cls, value: str | None) -> str | None:
        if value is not None and not _CALLABLE.fullmatch(value):
            example = "for instance agent:reply for the function reply in agent.py"
            raise ValueError(f"{value!r} is not of the form module:callable, {example}")
        return value

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

    @model_validator(mode="after")
    def _one_kind(self) -> AgentEntry:
        if self.http is not None and self.url is not None:
            raise ValueError("give `http` or `url`, not both")
        kinds = self.kinds
        if len(kinds) != 1:
            raise ValueError(f"exactly one of {', '.join(KINDS)} is needed, {len(kinds) or 'none'} given")
        if self.type is not None and self.type != kinds[0]:
            raise ValueError(f"type is {self.type!r}, but the keys describe an agent of type {kinds[0]!r}")
        foreign = {
            "headers": ("http", self.headers),
            "response_path": ("http", self.response_path),
            "interpreter": ("python", self.interpreter),
        }
        for name, (kind, value) in foreign.items():
            if value is not None and kinds[0] != kind:
                raise ValueError(f"`{name}` is for agents of type {kind}, not {kinds[0]}")
        return self

    @property
    def kinds(self) -> list[str]:
        """The agent kinds that the given keys describe."""
        targets = {"command": self.command, "http": self.http or self.url, "python": self.python}
        targets["replay"] = self.replay
        return [kind for kind, target in targets.items() if target is not None]


def read_agent(value: Any, document: Document, at: KeyPath) -> tuple[AgentSpec | None, list[Problem]]:
    """One agent entry of a document, or its problems."""
    try:
        written = _long_form(_as_written(value, document, at))
    except ValueError as error:
        return None, [document.problem(at, f"{value!r} cannot be split into arguments: {error}")]
    entry, problems = validate(AgentEntry, written, document, at)
    if entry is None:
        return None, problems
    line = document.line(at)
    where = f"{document.file}:{line}" if line else document.file
    return _spec(entry, document.directory, where), []


def read_tool(value: Any, document: Document, at: KeyPath) -> tuple[AgentSpec | None, list[Problem]]:
    """One entry of ``tools:``, written as an agent is; or its problems."""
    spec, problems = read_agent(value, document, at)
    if spec is None:
        return None, problems
    if spec.kind not in TOOL_KINDS:
        return None, [document.problem(at, f"a tool is one of {', '.join(TOOL_KINDS)}, not {spec.kind}")]
    if spec.options.get("response_path"):
        return None, [
            document.problem((*at, "response_path"), "this key is for agents; all of a tool's result counts")
        ]
    return replace(spec, kind=f"{spec.kind}_tool"), []


def agent_from_text(text: str, directory: Path) -> AgentSpec:
    """An agent given on the command line.

    Args:
        text: ``replay:FILE``, ``python:module:callable``, ``command:ARGS``, or a URL.
        directory: where relative paths start.

    Raises:
        ConfigError: none of these.
    """
    document = Document(file="--agent", directory=directory, data=None)
    spec, problems = read_agent(text, document, ())
    if spec is None:
        raise ConfigError(problems)
    return spec


def is_inline_agent(text: str) -> bool:
    """Whether a text describes an agent itself, and is not the name of one."""
    return text.startswith(("http://", "https://")) or (text.partition(":")[0] in KINDS and ":" in text)


def _as_written(value: Any, document: Document, at: KeyPath) -> Any:
    """Arguments, variables and headers that YAML took for numbers or booleans as they are written."""
    if isinstance(value, list):
        return document.as_written(value, at)
    if not isinstance(value, dict):
        return value
    return value | {key: document.as_written(value[key], (*at, key)) for key in _TEXT_KEYS if key in value}


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
    return {kind: target} if kind in KINDS else {"type": value}


def _spec(entry: AgentEntry, directory: Path, where: str) -> AgentSpec:
    kind = entry.kinds[0]
    targets: dict[str, str | tuple[str, ...]] = {
        "command": tuple(entry.command or ()),
        "http": entry.http or entry.url or "",
        "python": entry.python or "",
        "replay": str(directory / (entry.replay or "")),
    }
    options: dict[str, Any] = {"headers": entry.headers or {}, "response_path": entry.response_path}
    if entry.interpreter:
        options["interpreter"] = _program(entry.interpreter, directory)
    return AgentSpec(
        kind=kind,
        target=targets[kind],
        directory=str(directory),
        timeout_s=entry.timeout,
        concurrency=entry.concurrency,
        retries=entry.retries,
        config=entry.config,
        env=entry.env,
        options=options,
        where=where,
    )


def _program(name: str, directory: Path) -> str:
    """A path relative to the file; a bare name is looked up on PATH as always."""
    return str(directory / name) if "/" in name else name
