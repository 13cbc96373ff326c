"""Reads how to reach an agent: from ``agents:`` in agenteval.yaml, ``agent:`` in a suite, or ``--agent``.

Canonical forms, each with optional ``timeout``, ``concurrency``, ``retries``, ``config`` and ``env``::

    {command: [python, agent.py]}
    {http: "https://…", headers: {…}, body: {…}, response: {answer: data.answer}}
    {python: "module:callable", interpreter: .venv/bin/python}
    {replay: answers.jsonl}
    {holodeck: agent.yaml}
    {kind: acme.a2a, options: {…}}
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.documents.durations import Duration
from agenteval.core.documents.validation import validate
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.text.choices import join_choices
from agenteval.suite.agent_kinds import BY_KEY, KINDS, TOOL_SUFFIX, AgentKind
from agenteval.suite.command_line import INPUT, takes_input
from agenteval.suite.http_keys import FOREIGN_KEYS
from agenteval.suite.model import AgentSpec, Count
from agenteval.suite.reply_keys import reply_problem
from agenteval.suite.request_template import placeholders

_TEXT_KEYS = ("command", "env", "headers")

#: Keys of an agent or tool under test that take credentials.
CREDENTIALS = ("env.*", "headers.*")


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
            owners = _owners(key)
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


def _owners(key: str) -> list[str]:
    return [kind.name for kind in KINDS if kind.keys is not None and key in kind.keys.model_fields]


def read_agent(value: Any, document: Document, at: KeyPath) -> tuple[AgentSpec | None, list[Problem]]:
    """Return one agent entry of a document, or its problems."""
    try:
        written = _long_form(_as_written(value, document, at))
    except ValueError as error:
        return None, [document.problem(at, f"{value!r} cannot be split into arguments: {error}")]
    entry, problems = validate(AgentEntry, written, document, at)
    if entry is None:
        return None, problems
    line = document.line((*at, *_target_path(entry, value)))
    where = f"{document.file}:{line}" if line else document.file
    return _spec(entry, document.directory, where), []


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
    """Return the agent in a command-line option.

    Args:
        text: ``replay:FILE``, ``python:module:callable``, ``command:ARGS``, ``kind:NAME``, or a URL.
        directory: base of relative paths.

    Raises:
        ConfigError: the text has none of these forms.
    """
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
        control=entry.control or None,
    )
