"""An agent that is a program: one JSON request on stdin, the reply on stdout."""

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

_MOST_OUTPUT = 64 * 2**20


@dataclass(frozen=True)
class Ended:
    """A program that ended by itself: its exit status (negative: the signal), its output, and its last errors."""

    status: int
    output: bytes
    errors: bytes

    @property
    def failure(self) -> str:
        """How it ended, with the end of its error output."""
        detail = tail(self.errors)
        return ending(self.status) + (f": {detail}" if detail else "")


class Program:
    """A program of the user, started anew for every call.

    Args:
        spec: its definition.
        what: what it is called in messages.
    """

    def __init__(self, spec: AgentSpec, what: str) -> None:
        self._spec = spec
        self._what = what
        self._environment = user_environment(spec.env)
        self._program = ""

    def find(self) -> None:
        """Make sure that it is there.

        Raises:
            ConfigError: it is not.
        """
        self._program = find_program(
            self._spec.target[0], self._spec.directory, self._environment.get("PATH"), self._spec.where
        )

    async def run(self, request: Any) -> Ended:
        """Run it once, with a JSON request on its standard input.

        Raises:
            AgentError: it cannot be started, or writes without end.
        """
        line = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        output = bytearray()
        errors: deque[bytes] = deque(maxlen=STDERR_CHUNKS)

        def collect(data: bytes) -> None:
            if len(output) <= _MOST_OUTPUT:
                output.extend(data)
            elif child is not None:
                # Nobody reads what it still has to say.
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
        if len(output) > _MOST_OUTPUT:
            raise AgentError(f"{self._what} wrote more than {_MOST_OUTPUT // 2**20} MiB")
        return Ended(child.returncode or 0, bytes(output), b"".join(errors))


class CommandAgent:
    """Starts the program anew for every turn; it gets the history with each request."""

    def __init__(self, spec: AgentSpec) -> None:
        self._program = Program(spec, "the agent's command")

    async def start(self) -> None:
        """Find the program."""
        self._program.find()

    def session(self) -> CommandAgent:
        """The program keeps no state, so every session is the agent itself."""
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
        """Nothing is held between turns."""

    async def close(self) -> None:
        """Nothing outlives a turn."""


def parse_output(output: bytes) -> Reply:
    """A reply object if the output is one, else the output as plain text without its last line break."""
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
    """Text as programs print it, without the line break at its end."""
    return text.removesuffix("\n").removesuffix("\r")
