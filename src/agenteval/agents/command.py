"""Agents that are programs: one JSON request on stdin, the reply on stdout."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.core.errors import AgentError, TransientAgentError
from agenteval.core.process.child import STDERR_CHUNKS, Child, ending, find_program, tail
from agenteval.core.process.confinement import user_environment
from agenteval.suite.model import AgentSpec

_MAX_OUTPUT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Ended:
    """A program that ended: exit status (negative: the signal), output, and the end of its error output."""

    status: int
    output: bytes
    errors: bytes

    @property
    def failure(self) -> str:
        """The exit status in words, with the end of the error output."""
        detail = tail(self.errors)
        return ending(self.status) + (f": {detail}" if detail else "")


class Program:
    """A user program, started for every call.

    Args:
        spec: the definition.
        what: the program's name in messages.
    """

    def __init__(self, spec: AgentSpec, what: str) -> None:
        self._spec = spec
        self._what = what
        self._environment = user_environment(spec.env)
        self._program = ""

    def find(self) -> None:
        """Find the program's file.

        Raises:
            ConfigError: the program does not exist or is not executable.
        """
        self._program = find_program(
            self._spec.target[0], self._spec.directory, self._environment.get("PATH"), self._spec.where
        )

    async def run(self, request: Any) -> Ended:
        """Run the program once, with a JSON request on its standard input.

        Raises:
            AgentError: the program cannot be started, or writes too much.
        """
        line = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        output = bytearray()
        errors: deque[bytes] = deque(maxlen=STDERR_CHUNKS)

        def collect(data: bytes) -> None:
            if len(output) <= _MAX_OUTPUT_BYTES:
                output.extend(data)
            elif child is not None:
                child.kill()

        child: Child | None = None
        try:
            child = await Child.start(
                (self._program, *self._spec.target[1:]),
                self._spec.directory,
                self._environment,
                collect,
                errors.append,
            )
        except (OSError, ValueError) as error:
            raise AgentError(f"{self._what} cannot be started: {error}") from None
        await child.finish(line)
        if len(output) > _MAX_OUTPUT_BYTES:
            raise AgentError(f"{self._what} wrote more than {_MAX_OUTPUT_BYTES // 2**20} MiB")
        return Ended(child.returncode or 0, bytes(output), b"".join(errors))


class CommandAgent:
    """Starts the program for every turn; each request contains the history."""

    def __init__(self, spec: AgentSpec) -> None:
        self._program = Program(spec, "the agent's command")

    async def start(self) -> None:
        """Find the program."""
        self._program.find()

    def session(self) -> CommandAgent:
        """Return the agent: the program keeps no state."""
        return self

    async def send(self, request: Request) -> Reply:
        """Run the program once."""
        ended = await self._program.run(request.to_json())
        if ended.status < 0 and not ended.output:
            raise TransientAgentError(f"the agent's command {ended.failure}")
        if ended.status != 0:
            raise AgentError(f"the agent's command {ended.failure}")
        return parse_output(ended.output)

    async def end(self) -> None:
        """Do nothing: no resources are kept between turns."""

    async def close(self) -> None:
        """Do nothing: no process outlives a turn."""


def parse_output(output: bytes) -> Reply:
    """Return the reply object in the output, else the output as plain text without its last line break."""
    text = output.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and "response" in value:
            return reply_from_json(value)
    return Reply(response=without_last_break(text))


def without_last_break(text: str) -> str:
    """Return printed text without the line break at its end."""
    return text.removesuffix("\n").removesuffix("\r")
