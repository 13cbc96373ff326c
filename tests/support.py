"""Helpers for integration and end-to-end tests: suites, agents, processes and a local HTTP service."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import certifi
import pytest
import yaml
from tests.command import can_copy, copying_program, run_copy

from agenteval.agents.base import Agent, Reply, Request
from agenteval.agents.registry import build_agent
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.redact import Redactor
from agenteval.metrics.resources import GraderPool, Resources, RunResources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.plan import Plan, PlannedCase, RunLimits, SuitePlan
from agenteval.run.progress import Progress
from agenteval.suite.model import AgentSpec

ROOT = Path(__file__).parents[1]
QUICKSTART = ROOT / "examples" / "quickstart" / "agent.yaml"
AGENTEVAL = Path(sys.executable).with_name("agenteval")
EQUALITY = {"type": "standard", "metric": "equality"}

# Seconds; anything slower is a defect, even on a slow machine.
PATIENCE_S = 300
FOREIGN_VARIABLES = ("GITHUB_", "INPUT_", "ACTIONS_", "RUNNER_", "AGENTEVAL_", "QUICKSTART_", "COVERAGE_", "PYTEST_")

# An AgentCI suite without cases, which a judge scores from 1 to 10
JUDGED_SUITE = """\
[eval]
description = "Answers help"
type = "llm"
targets.agents = ["default"]
targets.tools = []

[eval.llm]
model = "gpt-4.1"
prompt = "Does the answer help? 1 to 10 points."
"""


_VERDICT_LINE = re.compile(r"^(passed|FAILED|UNPROVEN|ERROR)  (.*(?:\n  \S.*)*)", re.MULTILINE)
_TOTALS = re.compile(
    r"(?:^|\s{3,}|\n  )(?:[\d,]+ of [\d,]+ pass · )?(?:\$[\d.,]+ · )?[\d.]+ (?:s|min|h)(?: \d+ \w+)?$"
)


def verdict_of(printed: str) -> str:
    """Return the verdict at the end of a printed result, as ``failed: 1 of 2 cases failed``."""
    *_, (word, rest) = _VERDICT_LINE.findall(printed)
    headline = " ".join(_TOTALS.sub("", rest).split())
    return f"{word.lower()}: {headline}" if headline else word.lower()


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A new directory that every user can reach, unlike those of pytest: as root, agents run as another user."""
    with tempfile.TemporaryDirectory(prefix="agenteval-test-", ignore_cleanup_errors=True) as folder:
        path = Path(folder).resolve()
        path.chmod(0o711)
        yield path


def _python_of_all_users() -> str:
    program = Path(sys.executable).resolve()
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in program.parents):
        return sys.executable
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable


PYTHON = _python_of_all_users()


# Agents, called directly


def suite_plan(case_s: float | None = None) -> SuitePlan:
    """Return what the cases of a suite without a configuration share."""
    resources = Resources(gateway=Gateway(LlmSettings()), graders=GraderPool({}, 1))
    return SuitePlan(MetricCatalog(resources), case_s=case_s)


def run_plan(journal: Path, cases: Sequence[PlannedCase], **more: Any) -> Plan:
    """A plan that asks nobody."""
    return Plan(
        run_id="run-1",
        cases=cases,
        suites={},
        limits=RunLimits(1),
        resources=RunResources(Gateway(LlmSettings()), ()),
        journal=journal,
        redact=Redactor([]),
        progress=Progress(),
        **{"compared": False, "is_quarantined_by_name": None, **more},
    )


def agent_spec(kind: str, target: str | Sequence[str], directory: Path, **fields: Any) -> AgentSpec:
    """Return an agent defined in line 3 of ``agenteval.yaml`` in a directory."""
    return AgentSpec(
        kind=kind,
        target=target if isinstance(target, str) else tuple(target),
        directory=str(directory),
        where=f"{directory / 'agenteval.yaml'}:3",
        **fields,
    )


def request(text: str = "hello", case: str = "case", **fields: Any) -> Request:
    """Return a request for one turn."""
    values: dict[str, Any] = {"input": text, "case": case, "turn": 0, "session": f"{case}#0", **fields}
    return Request(**values)


@contextlib.asynccontextmanager
async def started(spec: AgentSpec, concurrency: int = 8) -> AsyncIterator[Agent]:
    """Start an agent, and close it after the block."""
    agent: Agent = build_agent(spec, concurrency, Gateway(LlmSettings()))
    try:
        await agent.start()
        yield agent
    finally:
        await agent.close()


def ask(spec: AgentSpec, *requests: Request, concurrency: int = 8) -> list[Reply | BaseException]:
    """Return the replies or errors of an agent to concurrent requests."""

    async def run() -> list[Reply | BaseException]:
        async with asyncio.timeout(PATIENCE_S), started(spec, concurrency) as agent:
            return await asyncio.gather(*(agent.session().send(item) for item in requests), return_exceptions=True)

    return asyncio.run(run())


def answer(spec: AgentSpec, item: Request | None = None) -> Reply:
    """Return the reply to one request; raise its error."""
    (reply,) = ask(spec, item or request())
    if isinstance(reply, BaseException):
        raise reply
    return reply


def recorded_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make no pause of ``asyncio.sleep``; return the list to which each is added."""
    asked: list[float] = []
    sleep = asyncio.sleep

    async def no_pause(delay: float, result: Any = None) -> Any:
        if delay > 0:
            asked.append(delay)
        return await sleep(0, result)

    monkeypatch.setattr(asyncio, "sleep", no_pause)
    return asked


def recorded_pauses_of(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> list[float]:
    """Make no pause in modules, but advance their clocks; return the list to which each pause is added."""
    made: list[float] = []
    monotonic, now = time.monotonic, time.time
    clocks = SimpleNamespace(
        sleep=made.append, monotonic=lambda: monotonic() + sum(made), time=lambda: now() + sum(made)
    )
    for module in modules:
        monkeypatch.setattr(module, "time", clocks)
    return made


# Processes

# A Python program that leaves a process in a session of its own; the file `pid` is written once its first thread is a
# zombie.
DETACHED_WITHOUT_FIRST_THREAD = """
import ctypes, os, threading, time

def stay():
    while "State:\\tZ" not in open(f"/proc/{os.getpid()}/status").read():
        time.sleep(0.01)
    with open("pid", "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)

if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    threading.Thread(target=stay).start()
    # Python would end the whole process; this system call ends only the thread.
    ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
"""


def is_alive(pid: int) -> bool:
    """Return whether a thread of a process is running; a zombie is not."""
    try:
        states = [file.read_text(encoding="utf-8") for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(state.rpartition(")")[2].split()[0] not in {"Z", "X"} for state in states)


def ends(pid: int) -> bool:
    """Return whether a process ends within a generous time."""
    return eventually(lambda: not is_alive(pid))


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within a generous time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def free_port() -> int:
    """Return a port on which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def number_in(file: Path) -> int:
    """Wait for another process to write a number to a file; return it."""
    assert eventually(lambda: file.exists() and file.read_text(encoding="utf-8").endswith("\n")), f"no {file.name}"
    return int(file.read_text(encoding="utf-8"))


# Suites and the installed command


def write_suite(directory: Path, cases: Sequence[Mapping[str, Any]], **keys: Any) -> Path:
    """Write an ``agent.yaml`` whose cases are compared by equality."""
    suite = {"evaluations": {"metrics": [EQUALITY]}, "test_cases": list(cases), **keys}
    path = directory / "agent.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def case(name: str, text: str = "hello", ground_truth: str | None = "hello") -> dict[str, Any]:
    """Return a case that an echo agent passes."""
    return {"name": name, "input": text, "ground_truth": ground_truth}


def python_agent(directory: Path, code: str, **keys: Any) -> dict[str, Any]:
    """Return the definition of a Python agent ``reply`` with this code and a Python of all users."""
    (directory / "agent.py").write_text(code, encoding="utf-8")
    return {"python": "agent:reply", "interpreter": PYTHON, **keys}


def echo_agent(directory: Path, **keys: Any) -> dict[str, Any]:
    """Return an agent that answers with the question."""
    return python_agent(directory, "def reply(request):\n    return request['input']\n", **keys)


def python_program(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run this Python with arguments, in the environment of agenteval's commands."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def environment(**variables: str) -> dict[str, str]:
    """Return the tests' environment without a CI system's variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_VARIABLES)}
    return {**kept, "COLUMNS": "200", **variables}


def trusting_one_authority(directory: Path) -> dict[str, str]:
    """Return variables for programs that call a model: to read all certificate authorities takes 25 ms."""
    end = "-----END CERTIFICATE-----\n"
    file = directory / "one.pem"
    file.write_text(certifi.contents().partition(end)[0] + end, encoding="ascii")
    return dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(file))


@dataclass(frozen=True)
class Ended:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both output streams."""
        return self.out + self.err


def agenteval(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Ended:
    """Run the installed command until it ends, in a process of its own."""
    variables = environment() if env is None else env
    given = [str(argument) for argument in arguments]
    if not can_copy(variables):
        return run_to_end([str(AGENTEVAL), *given], cwd, variables)
    return Ended(*run_copy(str(AGENTEVAL), given, cwd, variables, PATIENCE_S))


@functools.cache
def copied_agenteval() -> str:
    """Return the installed command as a program that need not import agenteval again."""
    return str(copying_program(AGENTEVAL))


def copied_program(code: str, *arguments: str, cwd: Path) -> Ended:
    """Run Python code that uses agenteval, as the file ``program.py`` of a directory, in a process of its own."""
    program = cwd / "program.py"
    program.write_text(code, encoding="utf-8")
    return Ended(*run_copy(str(program), arguments, cwd, environment(), PATIENCE_S))


def run_to_end(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    """Run a command until it ends; return its output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def untimed(value: Any) -> Any:
    """Return JSON without times and random values."""
    if isinstance(value, dict):
        return {key: untimed(item) for key, item in value.items() if key not in {"latency_ms", "duration_ms"}}
    return [untimed(item) for item in value] if isinstance(value, list) else value


def said(results: Results) -> dict[str, Any]:
    """Return the results of a run without its id and times."""
    found: dict[str, Any] = untimed(results.model_dump(mode="json", exclude={"run"}))
    for entry in found["baseline_runs"]:
        del entry["run_id"], entry["created_at"]
    return found


def results_in(directory: Path) -> Results:
    """Read the results of a run with the default report directory."""
    return read_results(directory / "agenteval-report")


def statuses(results: Results) -> dict[str, str]:
    """Return the status of each case by name."""
    return {found.name: found.status for _, found in results.cases()}


# A local HTTP service


@dataclass
class Answer:
    """A reply of the service."""

    body: bytes | str | Mapping[str, Any] = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class HangUp(Exception):  # noqa: N818 - an action of the service, not an error
    """Raised by a responder: close the connection without an answer."""


@dataclass
class Service:
    """A local HTTP server and the requests it received."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def counted(self, line: str, body: dict[str, Any], headers: dict[str, str]) -> Iterator[None]:
        """Count a request in progress."""
        with self._lock:
            self.lines.append(line)
            self.requests.append(body)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, as some tests require."""


@contextlib.contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests in threads; yield the server's address without a path."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def serving(respond: Callable[[dict[str, Any]], Answer]) -> Iterator[Service]:
    """Serve an answer to each JSON document that is sent; a request without one has an empty mapping."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            with service.counted(f"{self.command} {self.path}", body, dict(self.headers)):
                try:
                    sent = respond(body)
                except HangUp:
                    self.close_connection = True
                    return
                content = sent.encoded()
                self.send_response(sent.status)
                self.send_header("Content-Type", sent.content_type)
                self.send_header("Content-Length", str(len(content)))
                for name, value in sent.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - the names are those of the base class

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Print nothing."""

    with listening(Handler) as address:
        service.url = f"{address}/chat"
        yield service
