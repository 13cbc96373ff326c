"""A program that runs agenteval's command in copies of itself, which need not import agenteval again.

It listens at the Unix socket with the number of its argument. Each connection is a request: first the three standard
streams, then the program, its arguments, directory and environment, as one line of JSON. The replies are two lines:
the process id, then the exit status as ``subprocess`` has it. Who closes the connection before kills the copy. It
imports agenteval at the first request, and ends when its standard input does.
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
import select
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, NoReturn

import agenteval

_NOT_IMPORTED = (
    # These run as programs.
    "agenteval.__main__",
    "agenteval.agents.worker.",
    # Its library reads the environment.
    "agenteval.metrics.deepeval",
)
# Libraries that take long to import, and that agenteval imports where it uses them.
_LIBRARIES = ("pydantic_ai.models.anthropic", "pydantic_ai.models.openai", "rouge_score.rouge_scorer", "sacrebleu")


def _import_most() -> None:
    # Nothing of a module is garbage: to look for some again and again takes a quarter of the time.
    gc.disable()
    for module in pkgutil.walk_packages(agenteval.__path__, "agenteval."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    for library in _LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    gc.enable()


def _next_command(requests: socket.socket) -> dict[str, Any] | None:
    """Return the command that this copy has to run; ``None`` in the first process, at its end."""
    running: dict[int, socket.socket] = {}
    ended, ended_end = socket.socketpair()
    ended_end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ended_end.fileno())
    has_imported = False
    while True:
        ready, _, _ = select.select([requests, ended, sys.stdin, *running.values()], [], [])
        if sys.stdin in ready:
            return None
        if ended in ready:
            ended.recv(4096)
            _tell_ended(running)
        _kill_left(running, ready)
        if requests not in ready:
            continue
        if not has_imported:
            _import_most()
            has_imported = True
        asked, _ = requests.accept()
        _, streams, _, _ = socket.recv_fds(asked, 1, 3)
        with asked.makefile("rb") as line:
            command: dict[str, Any] = json.loads(line.readline())
        copy = os.fork()
        if copy == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (requests, ended, ended_end, *running.values()):
                other.close()
            asked.close()
            _use(streams)
            return command
        for stream in streams:
            os.close(stream)
        running[copy] = asked
        _tell(asked, copy)


def _tell_ended(running: dict[int, socket.socket]) -> None:
    """Tell the exit status of each copy that has ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            copy, status = os.waitpid(-1, os.WNOHANG)
            if not copy:
                return
            if copy in running:
                with running.pop(copy) as asked:
                    _tell(asked, os.waitstatus_to_exitcode(status))


def _kill_left(running: dict[int, socket.socket], ready: list[Any]) -> None:
    """Kill the copies whose connections were closed: nobody waits for them."""
    for copy in [copy for copy, asked in running.items() if asked in ready]:
        os.kill(copy, signal.SIGKILL)
        running.pop(copy).close()


def _tell(asked: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        asked.sendall(b"%d\n" % number)


def _use(streams: list[int]) -> None:
    """Make the streams of a request the standard streams of this copy."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def main() -> None:
    """Answer requests until the process that started this one ends."""
    command = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if command is None:
        return
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["directory"])
    # The directory of this process, which may not be that of the command.
    tempfile.tempdir = None
    program = command["program"]
    sys.argv = [program, *command["arguments"]]
    added = [str(Path(folder).absolute()) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:] = [str(Path(program).parent), *dict.fromkeys([*added, *sys.path[1:]])]
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
