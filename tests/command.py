"""Runs agenteval's installed command in processes that need not import agenteval again."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import command_client, command_server
from tests.command_client import read_at_start

# Where the server of the whole test run listens.
_ADDRESS = "PYTEST_COMMAND_SERVER"


def can_copy(environment: Mapping[str, str]) -> bool:
    """Return whether the copy of a process is as good as a new process with this environment."""
    added = environment.get("PYTHONPATH", "").split(os.pathsep)
    at_start = any(Path(folder, "sitecustomize.py").exists() for folder in added if folder)
    return read_at_start(environment) == _STARTED_WITH and not at_start


def run_copy(
    program: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], patience_s: float
) -> tuple[int, str, str]:
    """Run a Python program in a copy of a process that has imported agenteval, until it ends.

    Returns:
        The exit status, standard output and standard error.
    """
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    command = {
        "program": program,
        "arguments": list(arguments),
        "directory": str(directory),
        "environment": dict(environment),
    }
    with ThreadPoolExecutor(2) as readers, socket.socket(socket.AF_UNIX) as asked:
        asked.connect(_server())
        socket.send_fds(asked, [b"\n"], [nothing, out_end, err_end])
        for end in (nothing, out_end, err_end):
            os.close(end)
        texts = [readers.submit(_read, end) for end in (out, err)]
        asked.sendall(json.dumps(command).encode() + b"\n")
        with asked.makefile("r") as said:
            said.readline()
            # The server kills the copy if this ends before it.
            asked.settimeout(patience_s)
            status = int(said.readline())
        return status, texts[0].result(patience_s), texts[1].result(patience_s)


def _read(end: int) -> str:
    with os.fdopen(end, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def copying_program(program: Path) -> Path:
    """Return a program of the same name that runs in such a copy, for shells, and for tests that send signals."""
    place = Path(tempfile.mkdtemp(prefix="agenteval-tests-"), program.name)
    atexit.register(shutil.rmtree, place.parent, ignore_errors=True)
    client = Path(command_client.__file__)
    arguments = [str(client), _server(), json.dumps(_STARTED_WITH), str(program)]
    place.write_text(
        f"#!{sys.executable} -IS\nimport sys\nsys.argv[:1] = {arguments}\n" + client.read_text(encoding="utf-8"),
        encoding="utf-8",
    )
    place.chmod(0o755)
    return place


_STARTED_WITH = read_at_start(os.environ)


@functools.cache
def _server() -> str:
    """Return the address of the process that is copied: that of the test run, else one of this process."""
    return os.environ.get(_ADDRESS) or start_server()


def start_server() -> str:
    """Start the process that is copied, which ends with this one, and return its address."""
    folder = tempfile.TemporaryDirectory(prefix="agenteval-tests-")
    address = str(Path(folder.name, "commands"))
    with socket.socket(socket.AF_UNIX) as requests:
        requests.bind(address)
        requests.listen(100)
        started = subprocess.Popen(
            [sys.executable, command_server.__file__, str(requests.fileno())],
            pass_fds=[requests.fileno()],
            env=os.environ | _STARTED_WITH,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        if started.stdin:
            started.stdin.close()
        started.wait()
        folder.cleanup()

    atexit.register(end)
    return address


def share_server() -> None:
    """Let all processes that this one starts use one server."""
    os.environ[_ADDRESS] = start_server()
