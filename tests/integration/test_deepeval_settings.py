"""deepeval, which asks judges, as a process in a working directory and an environment that try to configure it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mistakes import shown
from tests.support import PATIENCE_S, agenteval, case, environment, write_suite

# What files and variables try to switch on; each would change a judge, send something or write something.
_WANTED = {
    "CONFIDENT_API_KEY": "confident-key",
    "CONFIDENT_TRACING_ENABLED": "YES",
    "CONFIDENT_TRACE_FLUSH": "1",
    "DEEPEVAL_DISABLE_DOTENV": "0",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "0",
    "DEEPEVAL_EVAL_MODE": "hybrid",
    "DEEPEVAL_TELEMETRY_ENABLED": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "0",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "1",
    "LOCAL_MODEL_BASE_URL": "https://evil.example/v1",
    "LOCAL_MODEL_NAME": "evil",
    "OPENAI_BASE_URL": "https://evil.example/v1",
    "OPENAI_MODEL_NAME": "evil",
    "USE_LOCAL_MODEL": "YES",
}
_WATCHED = """
import json, os, sys
seen = []
def watch(event, arguments):
    # urllib3 binds a socket to see whether there is IPv6.
    if event.startswith("socket.") and event not in {"socket.__new__", "socket.bind"}:
        seen.append([event, str(arguments)])
    if event in {"subprocess.Popen", "os.rename", "os.mkdir"}:
        seen.append([event, str(arguments)])
    if event == "open" and isinstance(arguments[0], str) and os.path.abspath(arguments[0]).startswith(os.getcwd()):
        seen.append([event, str(arguments)])
sys.addaudithook(watch)
before = dict(os.environ)
from agenteval.metrics import deepeval, deepeval_settings
from deepeval.config.settings import get_settings
from deepeval.metrics import GEval, FaithfulnessMetric
from deepeval.telemetry import telemetry_opt_out, get_backend
from deepeval.tracing.utils import tracing_enabled
now = {name: value for name, value in os.environ.items() if before.get(name) != value}
settings = get_settings()
print(json.dumps({
    "seen": seen,
    "assigned": sorted(now),
    "settings": deepeval_settings.SETTINGS,
    "now": {name: os.environ[name] for name in deepeval_settings.SETTINGS},
    "judge": [settings.USE_LOCAL_MODEL, settings.OPENAI_MODEL_NAME, str(settings.LOCAL_MODEL_BASE_URL)],
    "opt_out": telemetry_opt_out(), "backend": type(get_backend()).__name__, "tracing": tracing_enabled(),
}))
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".deepeval").mkdir(parents=True)
    lines = "".join(f"{name}={value}\n" for name, value in _WANTED.items())
    for name in (".env", ".env.local", ".env.test"):
        (folder / name).write_text(f"APP_ENV=test\n{lines}", encoding="utf-8")
    keys = json.dumps({**_WANTED, "api_key": "confident-key", "model": "evil"})
    (folder / ".deepeval" / ".deepeval").write_text(keys, encoding="utf-8")
    for name in (".deepeval-cache.json", ".temp_test_run_data.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def _loaded(folder: Path, home: Path, **variables: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED],
        cwd=folder,
        env=environment(HOME=str(home), **variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize("by_variables", [False, True])
def test_nothing_configures_it(hostile: Path, tmp_path: Path, by_variables: bool) -> None:
    before, home = _contents(hostile), tmp_path / "home"
    home.mkdir()
    ours = {name: value for name, value in _WANTED.items() if name.startswith(("DEEPEVAL_", "CONFIDENT_"))}
    found = _loaded(hostile, home, **(ours if by_variables else {}))
    assert found["seen"] == []
    assert found["now"] == found["settings"]
    # GRPC_… are those of deepeval's library for telemetry.
    assert set(map(str, found["assigned"])) - {"GRPC_VERBOSITY", "GRPC_TRACE"} <= set(found["settings"])  # type: ignore[call-overload]
    assert found["judge"] == [None, None, "None"]
    assert found["opt_out"] is True
    assert found["backend"] == "NoopBackend"
    assert found["tracing"] is False
    assert _contents(hostile) == before
    assert _contents(home) == {}


def test_a_variable_that_it_cannot_read_is_named(tmp_path: Path) -> None:
    metric = {
        "type": "geval",
        "name": "kind",
        "criteria": "It is kind.",
        "model": {"provider": "ollama", "name": "a"},
    }
    write_suite(tmp_path, [case("one")], evaluations={"metrics": [metric]}, agent={"command": ["cat"]})
    ended = agenteval("run", cwd=tmp_path, env=environment(LOG_LEVEL="verbose"))
    assert ended.status == 2, ended.text
    (mistake,) = shown(ended.err)
    assert mistake.title.endswith("does not accept the value of the environment variable LOG_LEVEL")
    assert "= help: set no such variable" in mistake.text
    assert "Traceback" not in ended.text
