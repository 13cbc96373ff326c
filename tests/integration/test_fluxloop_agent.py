"""The `runner` of a FluxLoop project as the agent of its evaluation, in real processes without FluxLoop's SDK."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import answer, request

from agenteval.agents.base import Request
from agenteval.core.errors import AgentError, ConfigError, UserCodeError
from agenteval.suite.formats.fluxloop.suite import load_fluxloop
from agenteval.suite.model import AgentSpec, Suite

EVALUATION = "evaluators:\n- {name: basic, type: rule_based, rules: [{check: output_not_empty}]}\n"
INPUT: dict[str, Any] = {
    "base_inputs": [{"input": "Where?"}],
    "personas": [{"name": "novice", "description": "is new", "characteristics": ["asks"], "goals": ["a", "b"]}],
}
AGENT = """
import functools, os

def run(prompts=None, *, part="four"):
    return {"transcript": [{"user": prompts}], "part": part}

def named(first, message): return f"{first} {message}"
def everything(text, persona, persona_prompt, iteration):
    return f"{text} {persona.name} {persona.goals} {iteration}\\n{persona_prompt}"
async def later(query): return f"later {query}"
async def stream(query):
    for word in ("a", query):
        yield {"update": {"delta": word}}
async def deep(query):
    for word in ("a", query):
        yield {"message": {"text": word}, "n": 1}
def pieces(query):
    yield "a"
    yield query
def nothing(query): return None
def response(query): return {"response": query}
def numbers(query): return [1, 2.5, None]
def environment(query): return os.environ["SHOP"] + os.environ["LEVEL"] + os.environ["TOP"]
def none(): return "x"
def broken(query): raise RuntimeError("no stock")
class Point:
    def __str__(self): return "a point"
def point(query): return Point()
class Bot:
    def __init__(self, name="bot"):
        self.name, self.asked = name, 0
    def ask(self, query):
        self.asked += 1
        return f"{self.name} {query} {self.asked}"
    def __call__(self, query): return f"called {query}"
class Needs:
    def __init__(self, name): pass
    def ask(self, query): return query
def make(name): return Bot(name)
bot = Bot("instance")
value = 3
@functools.wraps(run)
def wrapped(*args, **kwargs): return run(*args, **kwargs)
"""


def project(folder: Path, runner: dict[str, Any], **simulation: Any) -> Path:
    """Write a project in a subfolder of the agent's repository, and return its `evaluation.yaml`."""
    (folder / ".git").mkdir(parents=True)
    (folder / "src" / "shop").mkdir(parents=True)
    (folder / "src" / "shop" / "main.py").write_text(AGENT)
    configs = folder / "simulations" / "first" / "configs"
    configs.mkdir(parents=True)
    (configs / "evaluation.yaml").write_text(EVALUATION)
    (configs / "input.yaml").write_text(yaml.safe_dump(INPUT))
    runner = {"python_path": ["src"], "working_directory": ".", **runner}
    (configs / "simulation.yaml").write_text(yaml.safe_dump({"name": "first", "runner": runner, **simulation}))
    return configs / "evaluation.yaml"


@pytest.fixture(autouse=True)
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)


def load(folder: Path, runner: dict[str, Any], **simulation: Any) -> Suite:
    return load_fluxloop(project(folder, runner, **simulation), "evaluation.yaml")


def agent(folder: Path, runner: dict[str, Any], **simulation: Any) -> AgentSpec:
    spec = load(folder, runner, **simulation).fallback_agent
    assert spec is not None
    return spec


def asked(iteration: int = 0) -> Request:
    return request("Where?", iteration=iteration, context={"persona": {**INPUT["personas"][0], "language": "en"}})


@pytest.mark.parametrize(
    ("runner", "response"),
    [
        ({"target": "shop.main:run"}, '{"transcript": [{"user": "Where?"}], "part": "four"}'),
        (
            {"module_path": "shop.main", "function_name": "run"},
            '{"transcript": [{"user": "Where?"}], "part": "four"}',
        ),
        ({"module_path": "shop.main"}, '{"transcript": [{"user": "Where?"}], "part": "four"}'),
        ({"target": "shop.main:wrapped"}, '{"transcript": [{"user": "Where?"}], "part": "four"}'),
        ({"target": "shop.main:later"}, "later Where?"),
        ({"target": "shop.main:stream"}, "aWhere?"),
        ({"target": "shop.main:deep", "stream_output_path": "message.text"}, "aWhere?"),
        ({"target": "shop.main:pieces"}, "aWhere?"),
        ({"target": "shop.main:nothing"}, ""),
        ({"target": "shop.main:response"}, '{"response": "Where?"}'),
        ({"target": "shop.main:numbers"}, "[1, 2.5, null]"),
        ({"target": "shop.main:point"}, "a point"),
        ({"target": "shop.main:Bot"}, "called Where?"),
        ({"target": "shop.main:Bot.ask"}, "bot Where? 1"),
        ({"target": "shop.main:bot.ask"}, "instance Where? 1"),
        (
            {"target": "shop.main:Bot.ask", "factory": "shop.main:make", "factory_kwargs": {"name": "made"}},
            "made Where? 1",
        ),
        (
            {"target": "shop.main:Needs.ask", "factory": "shop.main:make", "factory_kwargs": {"name": "made"}},
            "made Where? 1",
        ),
    ],
)
def test_the_runner_answers(tmp_path: Path, runner: dict[str, Any], response: str) -> None:
    assert answer(agent(tmp_path, runner), asked()).response == response


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("shop.main:named", AgentError, "missing 1 required positional argument: 'first'"),
        ("shop.main:broken", AgentError, "RuntimeError: no stock"),
        ("shop.main:none", ConfigError, "shop.main:none has no parameter for the input"),
        ("shop.main:value", ConfigError, "shop.main:value is a int, which cannot be called"),
        ("shop.main:Needs.ask", ConfigError, "name a runner.factory"),
        ("shop.main:nobody", ConfigError, "module 'shop.main' has no 'nobody'"),
        ("shop.nowhere:run", ConfigError, "cannot import module 'shop.nowhere'"),
        ("shop.bad:run", UserCodeError, "cannot import module 'shop.bad': ZeroDivisionError"),
    ],
)
def test_errors(tmp_path: Path, target: str, error: type[Exception], message: str) -> None:
    spec = agent(tmp_path, {"target": target})
    (tmp_path / "src" / "shop" / "bad.py").write_text("1 / 0\n")
    with pytest.raises(error, match=message) as raised:
        answer(spec, request("Where?"))
    if error is not AgentError:
        assert "simulation.yaml:" in str(raised.value)


def test_variables_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOP", "environment ")
    evaluation = project(
        tmp_path,
        {"target": "shop.main:environment", "environment_vars": {"LEVEL": 60.940, "API_KEY": "abcdef-ghijkl"}},
    )
    first = evaluation.parents[1]
    (first.parent / ".env").write_text("SHOP=above\nLEVEL=above\nTOP=above\n")
    (first / ".env").write_text("SHOP='project '\nGITHUB_TOKEN=x\nAPI_TOKEN=zyxwvu-tsrqpo\n")
    suite = load_fluxloop(evaluation, "evaluation.yaml")
    assert suite.fallback_agent is not None
    assert answer(suite.fallback_agent, asked()).response == "project 60.94environment "
    assert suite.warnings == (".env: GITHUB_TOKEN: a file cannot set variables of agenteval and of the runner",)
    assert {"abcdef-ghijkl", "zyxwvu-tsrqpo"} <= suite.secrets


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        ({"runner": {"args": {"part": "four"}}}, "runner.args: is not used, as in FluxLoop"),
        ({"runner": {"targt": "x:y"}}, "runner.targt: is not used, as in FluxLoop; did you mean 'target'?"),
        ({"runner": {"max_retries": 3, "use_docker": True}}, None),
        ({"multi_turn": {"enabled": True}}, "multi_turn: conversations with a supervisor are not supported"),
        ({"replay_args": {"enabled": True}}, "replay_args: recorded arguments are not supported"),
        ({"replay_args": {"enabled": False}}, None),
        ({"runner": {"python_path": None, "factory": None, "environment_vars": None}}, None),
    ],
)
def test_settings_without_effect(tmp_path: Path, keys: dict[str, Any], warning: str | None) -> None:
    suite = load(tmp_path, {"target": "shop.main:run", **keys.pop("runner", {})}, **keys)
    assert len(suite.warnings) == (warning is not None)
    assert warning is None or warning in suite.warnings[0]


@pytest.mark.parametrize(
    ("runner", "problem"),
    [
        ({"target": "shop.main"}, "runner.target: 'shop.main' is not of the form module:name"),
        ({"target": "shop.main:run", "factory": "make"}, "runner.factory: 'make' is not of the form module:name"),
        ({"target": "shop.main:run", "timeout_seconds": 0}, "runner.timeout_seconds: must be greater than 0"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, runner: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=r"simulation\.yaml:[0-9]+: ") as raised:
        load(tmp_path, runner)
    assert problem in str(raised.value)
