"""Runs users' Python code in a process of its own. Started by path, with the user's interpreter.

It needs nothing but the standard library and Python 3.8, and it imports nothing of agenteval.
Requests come as JSON lines on stdin::

    {"id": 1, "load": "module:callable"}
    {"id": 2, "call": "module:callable", "args": [...]}

Answers go out as JSON lines on the stdout that the process was started with: ``{"id", "value"}`` or
``{"id", "error", "kind"}``. Whatever the user's code prints goes to stderr, and what it reads from
stdin is empty.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import queue
import sys
import threading
import types
from typing import IO, TYPE_CHECKING, Any, Awaitable, Callable, Iterable

if TYPE_CHECKING:
    import asyncio

# Modules of agenteval's that run here, and where they lie.
OWN_FILES = {
    "agenteval.grader": "grader.py",
    "agenteval.agents.worker.functions": "agents/worker/functions.py",
    "agenteval.agents.worker.evaluation": "agents/worker/evaluation.py",
    "agenteval.agents.worker.metrics": "agents/worker/metrics.py",
    "agenteval.agents.worker.calls": "agents/worker/calls.py",
    "agenteval.agents.worker.arguments": "agents/worker/arguments.py",
    "agenteval.agents.worker.tool_calls": "agents/worker/tool_calls.py",
    "agenteval.agents.worker.fields": "agents/worker/fields.py",
    "agenteval.agents.worker.replies": "agents/worker/replies.py",
    "agenteval.agents.worker.runners": "agents/worker/runners.py",
    "agenteval.agents.worker.plugins": "agents/worker/plugins.py",
}
# Of generators that are coroutines (``types.coroutine``).
ITERABLE_COROUTINE = 0x100
OTHER_NAMES = {"holodeck.lib.test_runner.code_grader": "agenteval.grader"}


class Worker:
    """Imports in the main thread, as modules may expect, and runs each call in one of so many others."""

    def __init__(self, replies: IO[bytes], threads: int) -> None:
        self._replies = replies
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._outgoing: collections.deque[bytes] = collections.deque()
        # Not an executor: what it makes for each call takes longer than most calls here.
        self._most_threads = threads
        self._threads = 0
        self._calls: queue.SimpleQueue[tuple[dict[str, Any], Callable[..., Any]]] = queue.SimpleQueue()
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._targets: dict[str, Callable[..., Any]] = {}

    def serve(self, lines: Iterable[bytes]) -> None:
        """Take requests until there are no more."""
        for line in lines:
            request = json.loads(line)
            try:
                target = self._target(request.get("load") or request["call"])
            except LoadError as error:
                self._send_error(request["id"], error, "load")
                continue
            if "load" in request:
                self._send(as_json({"id": request["id"], "value": True}))
            else:
                self._submit(request, target)

    def _submit(self, request: dict[str, Any], target: Callable[..., Any]) -> None:
        """Have a thread answer: an idle one, a new one, or when all are there the first to end."""
        self._calls.put((request, target))
        if not self._idle.empty():
            self._idle.get()
        elif self._threads < self._most_threads:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._answer(*self._calls.get())
            self._idle.put(None)

    def _answer(self, request: dict[str, Any], target: Callable[..., Any]) -> None:
        try:
            self._send(as_json({"id": request["id"], "value": self._call(target, request["args"])}))
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises is an answer
            self._send_error(request["id"], error, "call")

    def _send_error(self, number: int, error: BaseException, kind: str) -> None:
        self._send(json.dumps({"id": number, "error": describe(error), "kind": kind}))

    def _send(self, line: str) -> None:
        self._outgoing.append(line.encode("ascii", "backslashreplace") + b"\n")
        # One thread writes, and takes along what the others have by then. It looks again when it has let go.
        while self._outgoing and self._writing.acquire(blocking=False):
            try:
                while self._outgoing:
                    self._replies.write(self._outgoing.popleft())
                self._replies.flush()
            finally:
                self._writing.release()

    def _call(self, target: Callable[..., Any], args: list[Any]) -> Any:
        value = target(*args)
        if is_awaitable(value):
            # Imported here: most agents do without, and it takes longer to import than all else.
            import asyncio

            return asyncio.run_coroutine_threadsafe(as_coroutine(value), self._event_loop()).result()
        return value

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        # One loop for all asynchronous calls, so that clients kept at module level stay usable.
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                threading.Thread(target=run_for_good, args=(self._loop,), daemon=True).start()
            return self._loop

    def _target(self, reference: str) -> Callable[..., Any]:
        if reference not in self._targets:
            self._targets[reference] = load(reference)
        return self._targets[reference]


class LoadError(Exception):
    """The module cannot be imported, or has no such callable."""


class ReplyError(Exception):
    """What the callable returned cannot be sent."""


def as_json(reply: dict[str, Any]) -> str:
    """The reply as one line."""
    try:
        return json.dumps(reply, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ReplyError("the reply is neither text nor JSON: %s" % describe(error)) from error


def run_for_good(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop that goes on after ``sys.exit()`` in a coroutine, which would stop it for all others."""
    while not loop.is_closed():
        # The call that raised it is told by its future.
        with contextlib.suppress(BaseException):
            loop.run_forever()


def is_awaitable(value: Any) -> bool:
    """As ``inspect.isawaitable``, whose module takes its time to import."""
    if isinstance(value, types.GeneratorType):
        return bool(value.gi_code.co_flags & ITERABLE_COROUTINE)
    return isinstance(value, collections.abc.Awaitable)


async def as_coroutine(awaitable: Awaitable[Any]) -> Any:
    """Any awaitable, as the coroutine that a loop in another thread takes."""
    return await awaitable


def load(reference: str) -> Callable[..., Any]:
    """The callable that ``module:name`` means."""
    module_name, _, path = reference.partition(":")
    try:
        target: Any = importlib.import_module(module_name)
    except BaseException as error:
        raise LoadError("cannot import module %r: %s" % (module_name, describe(error))) from error
    for name in path.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            raise LoadError("module %r has no %r" % (module_name, path)) from None
    if not callable(target):
        raise LoadError("%r is not callable" % reference)
    return target  # type: ignore[no-any-return]


def describe(error: BaseException) -> str:
    """An exception as one line of text."""
    if isinstance(error, (LoadError, ReplyError)):
        return str(error)
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = "(no text)"
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


class WorkerFinder(importlib.abc.MetaPathFinder):
    """Provides what calls graders and tools where agenteval is not installed, graders also under HoloDeck's name.

    It is asked last, so that packages that are installed win.
    """

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        """The module, or an empty package above it."""
        if fullname in OWN_FILES:
            file = pathlib.Path(__file__).resolve().parents[2] / OWN_FILES[fullname]
            return importlib.util.spec_from_file_location(fullname, str(file))
        if fullname in OTHER_NAMES:
            return importlib.machinery.ModuleSpec(fullname, AliasLoader(OTHER_NAMES[fullname]))
        if any(name.startswith(fullname + ".") for name in (*OWN_FILES, *OTHER_NAMES)):
            return importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        return None


class AliasLoader(importlib.abc.Loader):
    """Loads a module that is already there under another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> None:
        """An ordinary module, filled below."""

    def exec_module(self, module: Any) -> None:
        """Give it everything that the other one has."""
        original = importlib.import_module(self._name)
        public = {name: value for name, value in vars(original).items() if not name.startswith("__")}
        vars(module).update(public)


def main() -> None:
    """Serve until the parent closes stdin."""
    directory, threads = sys.argv[1], int(sys.argv[2])
    # The script's own folder is no place to import from; the agent's is.
    sys.path[0] = directory
    sys.meta_path.append(WorkerFinder())
    # Requests and replies move to descriptors that the user's code and its children do not know.
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    Worker(replies, threads).serve(requests)
    # stdin is closed: the parent is done. Threads that still hang must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
