"""Installs requirements of user code: runs the commands of ``setup`` in a separate virtual environment."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.process.child import Child, ending
from agenteval.core.process.confinement import confined, confinement, user_environment
from agenteval.core.process.interrupt import until_signal
from agenteval.core.text.escape import terminal
from agenteval.core.text.redact import Redactor

TIME_LIMIT_S = 1800.0
_SHELL = ("bash", "--noprofile", "--norc", "-eu", "-o", "pipefail", "-c")
# Line numbers start at the first command.
_SCRIPT = """trap 'printf "{token} %s\\n" "$LINENO" >&2' ERR; set -E; eval "$1" """
_LONGEST_LINE = 4000
_MOST_SHOWN = 4 * 10**6
_LAST_LINES = 15


class SetupError(InfrastructureError):
    """The commands of ``setup`` failed; the message names the command and its failure."""


@dataclass(frozen=True)
class Setup:
    """The setup and limits of user code.

    Attributes:
        commands: a bash script that installs its requirements; empty for none.
        pass_env: patterns of the secret variables to pass; ``None`` for all except the runner's.
        memory_mb: data of one process in memory, in MB (10^6 bytes); ``None`` is no limit.
        cpu_s: processor time of one process, in seconds; ``None`` is no limit.
    """

    commands: str = field(default="", repr=False)
    pass_env: tuple[str, ...] | None = None
    memory_mb: int | None = None
    cpu_s: int | None = None


@contextmanager
def users_code(setup: Setup, redact: Redactor) -> Iterator[None]:
    """Install the requirements of user code and apply its limits for the duration of the block.

    Args:
        setup: the setup and limits.
        redact: masks secrets in the output of the commands.

    Raises:
        SetupError: a command failed.
    """
    with (
        confined(pass_env=setup.pass_env, memory_mb=setup.memory_mb, cpu_s=setup.cpu_s),
        provisioned(setup.commands, Path.cwd(), redact) as variables,
        confined(variables={**confinement().variables, **variables}),
    ):
        yield


@contextmanager
def provisioned(commands: str, directory: Path, redact: Redactor) -> Iterator[Mapping[str, str]]:
    """Run commands in a new virtual environment, which exists for the duration of the block.

    Args:
        commands: a bash script; does nothing if it is empty.
        directory: its working directory.
        redact: masks secrets in its output.

    Yields:
        The environment variables by which user code finds the virtual environment.

    Raises:
        SetupError: a command failed, or took too long.
    """
    if not commands.strip():
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix="agenteval-setup-")).resolve()
    try:
        give_to_user(folder)
        # The limits are for agents, and compilers need more; the environment of another setup is not inherited.
        others = {key: value for key, value in confinement().variables.items() if key not in {"PATH", "VIRTUAL_ENV"}}
        with confined(memory_mb=None, cpu_s=None, variables=others):
            variables = _install(commands, directory, folder / "venv", redact)
        yield variables
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def give_to_user(path: Path) -> None:
    """Change the owner of a file or directory to the user that runs user code."""
    owner = confinement().owner
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)


def _install(commands: str, directory: Path, venv: Path, redact: Redactor) -> dict[str, str]:
    environment = user_environment()
    path = environment.get("PATH", os.defpath)
    python, bash = (_found(name, path) for name in ("python3", _SHELL[0]))
    variables = {"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}{os.pathsep}{path}"}
    output = _Output(redact)
    made = _run((python, "-m", "venv", str(venv)), directory, environment, output)
    if made != 0:
        raise SetupError(f"setup: the virtual environment cannot be created: {output.failure(made)}")
    output = _Output(redact)
    argv = (bash, *_SHELL[1:], _SCRIPT.format(token=output.token), "setup", commands)
    status = _run(argv, directory, environment | variables, output)
    if status != 0:
        raise SetupError(f"setup: {_failed_command(commands, output.failed_line)}{output.failure(status)}")
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


def _run(argv: Sequence[str], directory: Path, environment: Mapping[str, str], output: _Output) -> int | None:
    """Run a program, show its output line by line, and return its exit status.

    Raises:
        SetupError: it cannot be started, or takes too long.
        SystemExit: a signal ended it.
    """
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
    argv: Sequence[str], directory: Path, environment: Mapping[str, str], output: _Output
) -> int | None:
    child = await Child.start(argv, str(directory), environment, output.receive, output.receive)
    await child.finish()
    output.end()
    return child.returncode


@dataclass
class _Output:
    """The output of a program: shown immediately, without secrets and workflow commands; its end is kept."""

    redact: Redactor
    token: str = field(default_factory=lambda: f"setup-{secrets.token_hex(16)}")
    failed_line: int | None = None
    _rest: bytearray = field(default_factory=bytearray)
    _last: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    _shown: int = 0

    def receive(self, data: bytes) -> None:
        """Show more output."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(bytes(self._rest[:_LONGEST_LINE]) + line)
            self._rest.clear()
        if len(self._rest) <= _LONGEST_LINE:
            self._rest += rest

    def end(self) -> None:
        """Show the rest at the end of the output."""
        if self._rest:
            self.receive(b"\n")

    def failure(self, status: int | None) -> str:
        """Return how the program ended, and its last lines."""
        return "\n".join((f"{ending(status)}:" if self._last else ending(status), *self._last))

    def _add(self, line: bytes) -> None:
        text = line[:_LONGEST_LINE].decode("utf-8", "replace")
        token, _, number = text.partition(" ")
        if token == self.token:
            self.failed_line = int(number) if number.isdigit() and self.failed_line is None else self.failed_line
            return
        clean = terminal(self.redact(text))
        self._last.append(clean)
        if self._shown <= _MOST_SHOWN:
            self._shown += len(clean)
            more = "" if self._shown <= _MOST_SHOWN else "\nagenteval: further output of setup is not shown"
            sys.stdout.write(f"{clean}{more}\n")
            sys.stdout.flush()
