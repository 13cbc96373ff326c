"""Runs user Python code in a separate process, started by path with the user's interpreter.

This file needs only Python 3.8 and the standard library. Requests are JSON lines on stdin::

    {"id": 1, "load": "module:name"}
    {"id": 2, "call": "module:callable", "args": [...], "load": "module:name"}

``load`` imports an object of the user, in the main thread and before the call. Replies are JSON lines on the original
stdout of the process: ``{"id", "value"}`` or ``{"id", "error", "kind"}``. The kind is ``missing`` if a name does not
exist, ``broken`` if the import of user code failed, and ``call`` if the call did. Output of user code goes to stderr,
and its stdin is empty.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import importlib
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

# The modules of agenteval that run in a worker, and their paths.
OWN_FILES = {
    "agenteval.grader": "grader.py",
    "agenteval.agents.worker.references": "agents/worker/references.py",
    "agenteval.agents.worker.targets": "agents/worker/targets.py",
    "agenteval.agents.worker.adapters": "agents/worker/adapters.py",
    "agenteval.agents.worker.metrics": "agents/worker/metrics.py",
    "agenteval.agents.worker.calls": "agents/worker/calls.py",
    "agenteval.agents.worker.replies": "agents/worker/replies.py",
    "agenteval.agents.worker.plugins": "agents/worker/plugins.py",
    "agenteval.agents.worker.fluxloop": "agents/worker/fluxloop.py",
    "agenteval.agents.worker.holodeck": "agents/worker/holodeck.py",
}
# The flag of generator-based coroutines (``types.coroutine``).
ITERABLE_COROUTINE = 0x100
PR_SET_DUMPABLE = 4
OTHER_NAMES = {"holodeck.lib.test_runner.code_grader": "agenteval.grader"}


class Worker:
    """Imports modules in the main thread, as some require, and runs calls in a limited number of other threads."""

    def __init__(self, replies: IO[bytes], threads: int) -> None:
        self._replies = replies
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._outgoing: collections.deque[bytes] = collections.deque()
        # Not an executor: its overhead per call exceeds the duration of most calls.
        self._most_threads = threads
        self._threads = 0
        self._calls: queue.SimpleQueue[tuple[dict[str, Any], Callable[..., Any]]] = queue.SimpleQueue()
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._targets: dict[str, Any] = {}

    def serve(self, lines: Iterable[bytes]) -> None:
        """Process requests until the input ends."""
        for line in lines:
            request = json.loads(line)
            try:
                if "load" in request:
                    self._target(request["load"])
                target = self._target(request["call"]) if "call" in request else None
            except Exception as error:  # noqa: BLE001 - every failed import is a reply
                self._send_error(request["id"], error, failure_kind(error))
                continue
            if target is None:
                self._send(as_json({"id": request["id"], "value": True}))
            else:
                self._submit(request, target)

    def _submit(self, request: dict[str, Any], target: Callable[..., Any]) -> None:
        """Queue a request for an idle thread, starting a new thread up to the limit."""
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
        except BaseException as error:  # noqa: BLE001 - every exception of user code is a reply
            self._send_error(request["id"], error, call_kind(error))

    def _send_error(self, number: int, error: BaseException, kind: str) -> None:
        self._send(json.dumps({"id": number, "error": describe(error), "kind": kind}))

    def _send(self, line: str) -> None:
        self._outgoing.append(line.encode("ascii", "backslashreplace") + b"\n")
        # One thread writes, including replies that others queue meanwhile. It checks again after releasing the lock.
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
            # Imported here: it is the slowest import, and most agents do not need it.
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

    def _target(self, reference: str) -> Any:
        if reference not in self._targets:
            self._targets[reference] = load(reference)
        return self._targets[reference]


class ReplyError(Exception):
    """The callable's return value cannot be serialised."""


def as_json(reply: dict[str, Any]) -> str:
    """Return the reply as one line of JSON."""
    try:
        return json.dumps(reply, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ReplyError("the reply is neither text nor JSON: %s" % describe(error)) from error


def run_for_good(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop and restart it after ``sys.exit()`` in a coroutine, which stops the loop for all others."""
    while not loop.is_closed():
        # The future reports the exception to the call that raised it.
        with contextlib.suppress(BaseException):
            loop.run_forever()


def is_awaitable(value: Any) -> bool:
    """Return the same as ``inspect.isawaitable``; that module is slow to import."""
    if isinstance(value, types.GeneratorType):
        return bool(value.gi_code.co_flags & ITERABLE_COROUTINE)
    return isinstance(value, collections.abc.Awaitable)


async def as_coroutine(awaitable: Awaitable[Any]) -> Any:
    """Wrap an awaitable in a coroutine, for a loop in another thread."""
    return await awaitable


def load(reference: str) -> Any:
    """Return the object at ``module:name``."""
    from agenteval.agents.worker.references import find

    return find(reference)


def failure_kind(error: Exception) -> str:
    """Return the kind of a failed import."""
    from agenteval.agents.worker.references import MissingError

    return "missing" if isinstance(error, MissingError) else "broken"


def call_kind(error: BaseException) -> str:
    """Return the kind of a failed call: ``broken`` if a module of the user that it needs cannot be imported."""
    references = sys.modules.get("agenteval.agents.worker.references")
    return "broken" if references is not None and isinstance(error, references.BrokenError) else "call"


def describe(error: BaseException) -> str:
    """Return an exception as one line of text."""
    if isinstance(error, ReplyError) or getattr(error, "is_of_agenteval", False) is True:
        return str(error)
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = "(no text)"
    return "%s: %s%s" % (type(error).__name__, text, _place(error)) if text else type(error).__name__ + _place(error)


def _place(error: BaseException) -> str:
    here, place, trace = str(pathlib.Path.cwd()) + os.sep, "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(here) and "site-packages" not in file:
            place = " (%s:%d)" % (file[len(here) :], trace.tb_lineno)
        trace = trace.tb_next
    return place


class WorkerFinder:
    """Provides agenteval's grader and tool modules if agenteval is not installed; graders also by HoloDeck's name.

    It is the last finder, so that installed packages take precedence. It and its loader have no base class, because
    ``importlib.abc`` imports much that most agents do not need.
    """

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        """Return the spec of the module, or of an empty parent package."""
        if fullname in OWN_FILES:
            file = pathlib.Path(__file__).resolve().parents[2] / OWN_FILES[fullname]
            return importlib.util.spec_from_file_location(fullname, str(file))
        if fullname in OTHER_NAMES:
            loader: Any = AliasLoader(OTHER_NAMES[fullname])
            return importlib.machinery.ModuleSpec(fullname, loader)
        if any(name.startswith(fullname + ".") for name in (*OWN_FILES, *OTHER_NAMES)):
            return importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        return None


class AliasLoader:
    """Loads an already loaded module under another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> None:
        """Return ``None``, for an ordinary module that ``exec_module`` fills."""

    def exec_module(self, module: Any) -> None:
        """Copy the contents of the other module."""
        original = importlib.import_module(self._name)
        public = {name: value for name, value in vars(original).items() if not name.startswith("__")}
        vars(module).update(public)


def hide_this_process() -> None:
    """Close memory, variables and pipes of this process to other processes of the same user (Linux).

    Otherwise an agent could write a reply of a grader into the grader's pipe.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def check_access(directory: str) -> None:
    """End the process with a message if its user cannot read a directory; imports would find nothing in it."""
    try:
        os.listdir(directory)  # noqa: PTH208 - nothing is made of the names
    except PermissionError:
        sys.exit("user %d cannot read %s; give the user the right to read it (chmod a+r)" % (os.geteuid(), directory))


def add_source_folder(folder: pathlib.Path) -> None:
    """Make the modules of a folder importable if it is not a package itself.

    The standard library precedes it. It precedes installed packages, which may be older copies of its modules.
    """
    # Unlike pathlib, these functions return False if the user may not look there.
    if os.path.isdir(folder) and not os.path.exists(folder / "__init__.py"):  # noqa: PTH110, PTH112
        installed = (
            index for index, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages"))
        )
        sys.path.insert(next(installed, len(sys.path)), str(folder))


def main() -> None:
    """Serve until the parent closes stdin."""
    directory, threads = sys.argv[1], int(sys.argv[2])
    if "hidden" in sys.argv[3:]:
        hide_this_process()
    check_access(directory)
    # Modules are imported from the agent's directory and its `src` instead of the script's.
    sys.path[0] = directory
    add_source_folder(pathlib.Path(directory, "src"))
    for argument in sys.argv[3:]:
        if argument.startswith("from:"):
            add_source_folder(pathlib.Path(argument[len("from:") :]))
    sys.meta_path.append(WorkerFinder())
    # Requests and replies move to file descriptors that user code and its child processes do not inherit.
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    Worker(replies, threads).serve(requests)
    # stdin is closed, so the parent has finished. A hanging thread must not keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
