"""Agents that are programs: the request on stdin or the input as an argument, the reply on stdout."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from agenteval.agents.base import PlainAgent, Remarks, Reply, Request
from agenteval.agents.reading import ReplyReader, without_last_break
from agenteval.core.child import LAST_WORDS_S, Child, LastOutput, ending, find_program
from agenteval.core.confine import MOST_BYTES, WROTE_TOO_MUCH, check_access, user_environment
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError, agent_problem
from agenteval.core.records import dataclass
from agenteval.suite.agent_keys import INPUT, takes_input, with_input
from agenteval.suite.model import AgentSpec

# Linux allows 128 KiB for one argument, with the other text around the input.
_MAX_ARGUMENT_BYTES = 120 * 2**10


_LOG = (
    "the command prints further lines before its reply, which were ignored; "
    "print everything except the reply to standard error"
)
_CUT_OFF = (
    f"a background process keeps the command's standard output open; what it prints later than {LAST_WORDS_S:g} s "
    "after the end of the command is not in the reply; wait for it, or redirect its output"
)
_PRINT = "print the answer on standard output, only a line break for an empty one"
_NO_HISTORY = (
    f"the command gets only the input of a turn ({INPUT}), so it does not know the earlier turns of a conversation; "
    f"without {INPUT} it can read them on standard input"
)


# Programs that run a file of this machine; `docker` and the like run those of another one.
_RUNNER = re.compile(
    r"(python|node|deno|bun|ruby|php|perl|(ba|z)?sh|java|npx|tsx|uv|poetry|pdm|pipenv)[\d.]*(\.exe)?"
)
_SCRIPT = re.compile(r"[^\s{:]+\.(py|[cm]?[jt]s|rb|sh|php|pl|jar)")


def _script(words: Sequence[str]) -> str:
    """Return the first argument that looks like a script, unless it may be the value of an option; or empty."""
    if not _RUNNER.fullmatch(Path(words[0]).name):
        return ""
    for before, word in pairwise(words):
        if _SCRIPT.fullmatch(word):
            # `-u` and the like have no value.
            return "" if before.startswith("--") else word
    return ""


@dataclass(frozen=True)
class Ended:
    """A program that ended.

    Attributes:
        status: its exit status; negative for a signal.
        was_cut_off: whether its background processes could have written more.
    """

    status: int
    output: bytes
    errors: str
    was_cut_off: bool

    @property
    def failure(self) -> str:
        """The exit status in words, with the end of the error output."""
        return ending(self.status) + (f": {self.errors}" if self.errors else "")


class Program:
    """A user program, started for every call."""

    def __init__(self, spec: AgentSpec, what: str) -> None:
        self._spec = spec
        self._what = what
        self._environment = user_environment(spec.env)
        self._program = ""

    def find(self) -> None:
        """Find the program's file, and the script among its arguments.

        Raises:
            ConfigError: the program or the script does not exist, or the program is not executable.
            UserCodeError: the user of user code may not execute it, or may not enter the agent's directory.
        """
        self._program = find_program(
            self._spec.target[0], self._spec.directory, self._environment.get("PATH"), self._spec.where
        )
        script = _script(self._spec.target)
        if script and not (Path(self._spec.directory) / script).exists():
            fix = "write it, or correct `command`"
            raise ConfigError(
                agent_problem(
                    self._spec.where, f"the file {script!r} does not exist (looked in {self._spec.directory}); {fix}"
                )
            )
        check_access(self._program, self._spec.directory, self._spec.where)

    @staticmethod
    def of_request(request: Any) -> bytes:
        """Return a JSON request as a line for the program's standard input."""
        return json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    def arguments_of(self, text: str) -> Sequence[str]:
        """Return the program's arguments with an input among them."""
        length = len(text.encode("utf-8", "surrogatepass"))
        if "\0" in text or length > _MAX_ARGUMENT_BYTES:
            what = "a null character" if "\0" in text else f"{length // 1024} KiB"
            raise AgentError(
                f"{self._what} cannot get an input with {what} as an argument; "
                f"read the request from standard input instead of using {INPUT}"
            )
        return with_input(self._spec.target[1:], text.encode("utf-8", "replace").decode())

    async def run(self, line: bytes = b"", arguments: Sequence[str] | None = None) -> Ended:
        """Run the program once.

        Args:
            line: its standard input.
            arguments: default: those of its definition.
        """
        arguments = self._spec.target[1:] if arguments is None else arguments
        output = bytearray()
        errors = LastOutput()

        def collect(data: bytes) -> None:
            if len(output) <= MOST_BYTES:
                output.extend(data)
            elif child is not None:
                child.kill()

        child: Child | None = None
        try:
            child = await Child.start(
                (self._program, *arguments),
                self._spec.directory,
                self._environment,
                collect,
                errors.add,
            )
        except (OSError, ValueError) as error:
            raise AgentError(f"{self._what} cannot be started: {error}") from None
        await child.finish(line)
        if len(output) > MOST_BYTES:
            raise AgentError(f"{self._what} {WROTE_TOO_MUCH}")
        return Ended(child.returncode or 0, bytes(output), errors.text(), child.was_cut_off)


class CommandAgent(PlainAgent):
    """Starts the program for every turn; it reads the request, which contains the history, or gets the input."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._program = Program(spec, "the agent's command")
        self._reader = ReplyReader(spec.options, log=_LOG)
        self._takes_input = takes_input(spec.target[1:])

    async def start(self) -> None:
        """Find the program."""
        self._program.find()

    def remarks(self) -> Remarks:
        """Return remarks about the program's output, its tool calls, and turns without their history."""
        return self._reader.remarks(self._spec.where)

    async def send(self, request: Request) -> Reply:
        """Run the program once."""
        if self._takes_input:
            if request.history:
                self._reader.notes[_NO_HISTORY] = None
            ended = await self._program.run(arguments=self._program.arguments_of(request.prompt))
        else:
            ended = await self._program.run(self._program.of_request(request.to_json()))
        if ended.status < 0 and not ended.output:
            raise TransientAgentError(f"the agent's command {ended.failure}")
        if ended.status != 0:
            raise AgentError(f"the agent's command {ended.failure}")
        if not ended.output:
            said = f" ({ended.errors})" if ended.errors else ""
            raise AgentError(f"the agent's command printed no answer{said}; {_PRINT}")
        if ended.was_cut_off:
            self._reader.notes[_CUT_OFF] = None
        return self._reader.parse_text(without_last_break(ended.output.decode("utf-8", "replace")), request)
