"""The recipes of docs/dependencies.md for the native action: earlier steps install or start the agent."""

from __future__ import annotations

import base64
import io
import json
import textwrap
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.git_server import commit, git
from tests.peers.native_step import NativeRunner, build_wheel
from tests.peers.test_native import variables
from tests.support import case, free_port, listening, open_folder, results_in, statuses, write_suite

pytestmark = pytest.mark.peer

USER, PASSWORD = "ci", "index-password-4711"
# Each agent answers by a package of its project, and adds what it can see of the credentials.
PYTHON_AGENT = """
import json, os, sys
import greeting
seen = [name for name, value in os.environ.items() if "index-password" in value]
print(greeting.greet(json.load(sys.stdin)["input"]), *seen)
"""
NODE_AGENT = """
const greeting = require("greeting")
const request = JSON.parse(require("fs").readFileSync(0))
const seen = Object.keys(process.env).filter(name => process.env[name].includes("index-password"))
console.log([greeting.greet(request.input), ...seen].join(" "))
"""
NODE_SERVER = """
const http = require("http")
http.createServer((request, response) => {
  let body = ""
  request.on("data", part => { body += part })
  request.on("end", () => response.end(body ? "hello " + JSON.parse(body).input : "ready"))
}).listen(Number(process.argv[2]), "127.0.0.1")
"""
PACKAGE_LOCK = {
    "name": "bot",
    "lockfileVersion": 3,
    "requires": True,
    "packages": {
        "": {"name": "bot", "dependencies": {"greeting": "file:greeting"}},
        "greeting": {"version": "1.0.0"},
        "node_modules/greeting": {"resolved": "greeting", "link": True},
    },
}
NODE_FILES = {
    "agent.js": NODE_AGENT,
    "package.json": json.dumps({"name": "bot", "dependencies": {"greeting": "file:greeting"}}),
    "package-lock.json": json.dumps(PACKAGE_LOCK),
    "greeting/package.json": json.dumps({"name": "greeting", "version": "1.0.0", "main": "index.js"}),
    "greeting/index.js": "exports.greet = name => 'hello ' + name\n",
}
UV_PROJECT = """
[project]
name = "bot"
version = "1"
requires-python = ">=3.11"
dependencies = ["greeting"]

[[tool.uv.index]]
name = "private"
url = "{index}"
default = true
"""


def greeting_wheel() -> bytes:
    """Return a wheel with one module."""
    record = "greeting-1.0.dist-info"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("greeting.py", "def greet(name):\n    return 'hello ' + name\n")
        archive.writestr(f"{record}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = ("greeting.py", f"{record}/METADATA", f"{record}/WHEEL", f"{record}/RECORD")
        archive.writestr(f"{record}/RECORD", "".join(f"{name},,\n" for name in names))
    return content.getvalue()


@contextmanager
def private_index() -> Iterator[str]:
    """Serve the wheel in a package index that wants a password; yield its address."""
    wheel = greeting_wheel()
    expected = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
    page = (
        '<html><body><a href="/files/greeting-1.0-py3-none-any.whl">greeting-1.0-py3-none-any.whl</a></body></html>'
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
                return
            content = wheel if self.path.endswith(".whl") else page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/zip" if content is wheel else "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the base class's name

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    with listening(Handler) as address:
        yield f"{address}/index"


@dataclass(frozen=True)
class Recipe:
    """A project, the step that installs or starts its agent, and how agenteval calls it.

    Attributes:
        step: the commands of the earlier step; ``{port}`` is a free port.
        env: variables of that step alone.
        everywhere: variables of both steps.
        inputs: inputs of the action.
    """

    programs: tuple[str, ...]
    files: Mapping[str, str]
    step: str
    agent: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    everywhere: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)


RECIPES = {
    "npm ci": Recipe(("node", "npm"), NODE_FILES, "npm ci --offline", {"command": ["node", "agent.js"]}),
    "npm ci as setup": Recipe(
        ("node", "npm"), NODE_FILES, "", {"command": ["node", "agent.js"]}, inputs={"setup": "npm ci --offline"}
    ),
    "uv sync from a private index": Recipe(
        ("uv",),
        {"agent.py": PYTHON_AGENT, "pyproject.toml": UV_PROJECT},
        "uv sync",
        {"command": ["uv", "run", "--no-sync", "python", "agent.py"]},
        env={"UV_INDEX_PRIVATE_USERNAME": USER, "UV_INDEX_PRIVATE_PASSWORD": PASSWORD},
    ),
    "uv sync outside of the workspace": Recipe(
        ("uv",),
        {"agent.py": PYTHON_AGENT, "pyproject.toml": UV_PROJECT},
        "uv sync",
        {"command": ["uv", "run", "--no-sync", "python", "agent.py"]},
        env={"UV_INDEX_PRIVATE_USERNAME": USER, "UV_INDEX_PRIVATE_PASSWORD": PASSWORD},
        everywhere={"UV_PROJECT_ENVIRONMENT": "{temporary}/agent-environment"},
    ),
    "a server of an earlier step": Recipe(
        ("node",),
        {"server.js": NODE_SERVER},
        """
        node server.js {port} >server.log 2>&1 &
        curl --silent --retry 30 --retry-connrefused --retry-delay 1 --fail http://localhost:{port}/health
        """,
        {"http": "http://localhost:{port}/chat"},
    ),
}


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with open_folder() as folder:
        folder.chmod(0o755)
        yield build_wheel(folder)


class Project:
    """The project of a recipe on a runner, with the private index of its packages."""

    def __init__(self, recipe: Recipe, folder: Path, wheel: Path, index: str) -> None:
        self.recipe = recipe
        self.places = {"{port}": str(free_port()), "{temporary}": str(folder / "temp"), "{index}": index}
        self.runner = NativeRunner(folder, wheel)
        # uv installs agenteval faster than pip does.
        self.runner.create(sorted({*recipe.programs, "uv"}))
        for path, text in recipe.files.items():
            target = self.runner.workspace / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._placed(text), encoding="utf-8")
        agent = {key: self._placed(value) for key, value in recipe.agent.items()}
        write_suite(self.runner.workspace, [case("a", "you", "hello you")], agent=agent)
        everywhere = {key: self._placed(value) for key, value in recipe.everywhere.items()}
        self.variables = variables(self.runner) | everywhere

    def install(self) -> str:
        """Run the recipe's step; return its output."""
        step = textwrap.dedent(self._placed(self.recipe.step))
        return self.runner.earlier(step, {**self.variables, **self.recipe.env})

    def evaluate(self, **inputs: str) -> tuple[bool, str, dict[str, str]]:
        """Run the action; return whether it succeeded, its log and its outputs."""
        return self.runner.run({**self.recipe.inputs, **inputs}, self.variables)

    def _placed(self, value: Any) -> Any:
        for place, text in self.places.items():
            value = value.replace(place, text) if isinstance(value, str) else value
        return value


@contextmanager
def project(name: str, wheel: Path) -> Iterator[Project]:
    with open_folder() as folder, private_index() as index:
        found = Project(RECIPES[name], folder, wheel, index)
        try:
            yield found
        finally:
            found.runner.end()


@pytest.mark.parametrize("name", ["npm ci", "uv sync from a private index", "a server of an earlier step"])
def test_an_agent_of_earlier_steps_answers(name: str, wheel: Path) -> None:
    with project(name, wheel) as found:
        log = found.install()
        succeeded, said, outputs = found.evaluate(baseline="none")

        assert succeeded, log + said
        assert outputs["verdict"] == "passed"
        assert statuses(results_in(found.runner.workspace)) == {"a": "passed"}
        assert PASSWORD not in log + said


@pytest.mark.parametrize("name", ["npm ci as setup", "uv sync outside of the workspace"])
def test_the_base_commits_agent_has_its_packages_too(name: str, wheel: Path) -> None:
    with project(name, wheel) as found:
        workspace = found.runner.workspace
        ignored = ("node_modules", ".venv", "agenteval-report", "earlier.json")
        (workspace / ".gitignore").write_text("\n".join(ignored), encoding="utf-8")
        git(workspace, "init", "--quiet", "--initial-branch", "main")
        base = commit(workspace)
        found.install()
        found.variables["GITHUB_SHA"] = base
        succeeded, said, _ = found.evaluate(baseline="none")
        assert succeeded, said
        assert statuses(results_in(workspace)) == {"a": "passed"}
        (workspace / "earlier.json").write_bytes((workspace / "agenteval-report" / "results.json").read_bytes())

        (agent,) = workspace.glob("agent.[jp][sy]")
        agent.write_text(agent.read_text(encoding="utf-8").replace("input", "case"), encoding="utf-8")
        change = commit(workspace)
        event = {"repository": {"full_name": "org/bot"}, "ref": "refs/heads/main", "before": base, "after": change}
        (found.runner.home / "event.json").write_text(json.dumps(event), encoding="utf-8")
        found.variables["GITHUB_SHA"] = change
        succeeded, said, outputs = found.evaluate(baseline="earlier.json")

        assert (succeeded, outputs["verdict"], outputs["regressions"]) == (False, "failed", "1"), said
        comparison = results_in(workspace).comparison
        assert comparison is not None
        assert comparison.base_sha == base, said
        assert PASSWORD not in said
