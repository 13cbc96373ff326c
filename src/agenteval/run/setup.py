"""Installs requirements of user code: runs the commands of ``setup`` in a separate virtual environment."""

from __future__ import annotations

import asyncio
import codecs
import os
import secrets
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agenteval.core.child import Child, ending
from agenteval.core.confine import (
    UserCodeRules,
    confined,
    confinement,
    owner_in,
    under_rules,
    user_environment,
    withheld_hint,
)
from agenteval.core.errors import InfrastructureError
from agenteval.core.escape import terminal
from agenteval.core.records import dataclass, field
from agenteval.core.redact import MASK, Redactor
from agenteval.core.runtime import until_signal

TIME_LIMIT_S = 1800.0
_SHELL = ("bash", "--noprofile", "--norc", "-eu", "-o", "pipefail", "-c")
# Line numbers start at the first command.
_SCRIPT = """trap 'printf "{token} %s\\n" "$LINENO" >&2' ERR; set -E; eval "$1" """
_LONGEST_LINE = 4000
_MOST_WAITING = 256 * 1024
_MOST_SHOWN = 4 * 10**6
_LAST_LINES = 15


class SetupError(InfrastructureError):
    """The commands of ``setup`` failed; the message names the command and its failure."""


@dataclass(frozen=True)
class Setup:
    """The setup and limits of user code.

    Attributes:
        commands: a bash script that installs its requirements; empty for none.
        rules: its variables and limits, by the configuration of the run.
    """

    commands: str = field(default="", repr=False)
    rules: UserCodeRules = field(default_factory=UserCodeRules)


@contextmanager
def users_code(setup: Setup, redact: Redactor) -> Iterator[None]:
    """Install the requirements of user code and apply its limits for the duration of the block."""
    with (
        under_rules(setup.rules),
        provisioned(setup.commands, Path.cwd(), redact) as variables,
        confined(variables={**confinement().variables, **variables}),
    ):
        yield


@contextmanager
def provisioned(commands: str, directory: Path, redact: Redactor) -> Iterator[Mapping[str, str]]:
    """Run a bash script, if it is not empty, in a new virtual environment that exists as long as the block.

    Yields:
        Environment variables that make user code use the virtual environment.
    """
    if not commands.strip():
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix="agenteval-setup-")).resolve()
    try:
        owner = owner_in(directory)
        if owner is not None:
            os.chown(folder, owner.uid, owner.gid)
        # User code's resource limits do not apply: compilers need more. Another setup's environment is not inherited.
        others = {key: value for key, value in confinement().variables.items() if key not in {"PATH", "VIRTUAL_ENV"}}
        with confined(memory_mb=None, cpu_s=None, variables=others):
            variables = _install(commands, directory, folder / "venv", redact)
        yield variables
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _install(commands: str, directory: Path, venv: Path, redact: Redactor) -> dict[str, str]:
    environment = user_environment()
    path = environment.get("PATH", os.defpath)
    python, bash = (_found(name, path) for name in ("python3", _SHELL[0]))
    variables = {"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}{os.pathsep}{path}"}
    output = _ShownOutput(redact)
    made = _run((python, "-m", "venv", str(venv)), directory, environment, output)
    if made != 0:
        raise SetupError(f"setup: the virtual environment cannot be created: {output.failure(made)}")
    output = _ShownOutput(redact)
    argv = (bash, *_SHELL[1:], _SCRIPT.format(token=output.token), "setup", commands)
    status = _run(argv, directory, environment | variables, output)
    if status != 0:
        hint = withheld_hint()
        failed = f"setup: {_failed_command(commands, output.failed_line)}{output.failure(status)}"
        raise SetupError(f"{failed}\n{hint}" if hint else failed)
    return variables


def _found(name: str, path: str) -> str:
    program = shutil.which(name, path=path)
    if program is None:
        raise SetupError(f"setup: {name} is not on PATH")
    return program


def _failed_command(commands: str, number: int | None) -> str:
    lines = commands.splitlines()
    if number is None or not 0 < number <= len(lines):
        return "it "
    return f"line {number}, `{lines[number - 1].strip()}`, "


def _run(argv: Sequence[str], directory: Path, environment: Mapping[str, str], output: _ShownOutput) -> int | None:
    status: list[int | None] = []

    async def work() -> None:
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                status.append(await _to_its_end(argv, directory, environment, output))
        except TimeoutError:
            raise SetupError(f"setup: it took longer than {TIME_LIMIT_S / 60:g} minutes") from None
        except (OSError, ValueError) as error:
            raise SetupError(f"setup: {argv[0]} cannot be started: {error}") from None

    signal = asyncio.run(until_signal(work()))
    if signal is not None:
        raise SystemExit(128 + signal)
    return status[0]


async def _to_its_end(
    argv: Sequence[str], directory: Path, environment: Mapping[str, str], output: _ShownOutput
) -> int | None:
    child = await Child.start(argv, str(directory), environment, output.receive, output.receive)
    await child.finish()
    output.end()
    return child.returncode


@dataclass
class _ShownOutput:
    """The output of a program: shown immediately, without secrets and workflow commands; the last lines are kept."""

    redact: Redactor
    token: str = field(default_factory=lambda: f"setup-{secrets.token_hex(16)}")
    failed_line: int | None = None
    _decode: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _waiting: str = ""
    _line: str = ""
    _last: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    _shown: int = 0

    def receive(self, data: bytes) -> None:
        """Show more output, except for an end that may be the beginning of a secret."""
        self._waiting += self._decode.decode(data)
        if len(self._waiting) > _MOST_WAITING:
            # Only who hides a secret writes as many separators into it.
            self._show(MASK)
            self._waiting = ""
        complete = self.redact.complete(self._waiting)
        text, self._waiting = self._waiting[:complete], self._waiting[complete:]
        self._show(self.redact(text))

    def end(self) -> None:
        text, self._waiting = self._waiting + self._decode.decode(b"", final=True), ""
        self._show(self.redact(text))
        if self._line:
            self._show("\n")

    def failure(self, status: int | None) -> str:
        return "\n".join((f"{ending(status)}:" if self._last else ending(status), *self._last))

    def _show(self, masked: str) -> None:
        *lines, rest = masked.split("\n")
        for line in lines:
            self._add((self._line + line)[:_LONGEST_LINE])
            self._line = ""
        self._line = (self._line + rest)[:_LONGEST_LINE]

    def _add(self, text: str) -> None:
        token, _, number = text.partition(" ")
        if token == self.token:
            self.failed_line = int(number) if number.isdigit() and self.failed_line is None else self.failed_line
            return
        clean = terminal(text)
        self._last.append(clean)
        if self._shown <= _MOST_SHOWN:
            self._shown += len(clean)
            more = "" if self._shown <= _MOST_SHOWN else "\nagenteval: further output of setup is not shown"
            sys.stdout.write(f"{clean}{more}\n")
            sys.stdout.flush()
