"""A program that runs agenteval's command in copies of itself, which need not import agenteval again.

Each request is a Unix socket and the three standard streams. The socket says the program, its arguments, directory
and environment, as JSON to its end. The replies are two lines: the process id, then the exit status as ``subprocess``
has it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import agenteval

_NOT_IMPORTED = (
    # These run as programs.
    "agenteval.__main__",
    "agenteval.agents.worker.",
    # Their libraries, numpy and deepeval, start threads or read the environment.
    "agenteval.compare.",
    "agenteval.metrics.judges.deepeval",
)
# Libraries that take long to import, and that agenteval imports where it uses them.
_LIBRARIES = ("pydantic_ai.models.anthropic", "pydantic_ai.models.openai", "rouge_score.rouge_scorer", "sacrebleu")


def _import_most() -> None:
    for module in pkgutil.walk_packages(agenteval.__path__, "agenteval."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    for library in _LIBRARIES:
        importlib.import_module(library)
    gc.freeze()


def _next_command(requests: socket.socket) -> dict[str, Any] | None:
    """Return the command that this copy has to run; ``None`` in the first process, at its end."""
    while True:
        message, streams, _, _ = socket.recv_fds(requests, 1, 4)
        if not message:
            return None
        if os.fork() == 0:
            requests.close()
            return _in_copy(socket.socket(fileno=streams.pop()), streams)
        for stream in streams:
            os.close(stream)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _in_copy(asked: socket.socket, streams: list[int]) -> dict[str, Any]:
    """Return the command in a second copy; the first one waits for it."""
    with asked.makefile("rb") as file:
        command: dict[str, Any] = json.load(file)
    copy = os.fork()
    if copy:
        for stream in (*streams, 0, 1, 2):
            os.close(stream)
        asked.sendall(b"%d\n" % copy)
        ended = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        asked.sendall(b"%d\n" % ended)
        os._exit(0)
    asked.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return command


def main() -> None:
    """Answer requests until nobody can ask any more."""
    _import_most()
    command = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if command is None:
        return
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["directory"])
    program = command["program"]
    sys.argv = [program, *command["arguments"]]
    sys.path[0] = str(Path(program).parent)
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _end(end.code or 0)
    _end(0)


def _end(status: int) -> NoReturn:
    """End this process as Python does, but free no modules: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
