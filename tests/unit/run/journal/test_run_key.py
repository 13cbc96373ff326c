"""Whatever a stored result depends on is part of the key of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import case, write_suite

from agenteval.core.llm.models import ModelSpec
from agenteval.run.config import Settings
from agenteval.run.context import RunContext
from agenteval.run.plan import Plan, PlannedCase
from agenteval.run.resolve.spec import make_plan
from agenteval.run.resolve_run import resolve_files
from agenteval.run.run_key import changes, conditions
from agenteval.suite.agent_definitions import ModelAgentSpec
from agenteval.suite.model import AgentSpec
from agenteval.suite.model_tools import FunctionTool, McpServer

SUITE = {"code": "the suite agent.yaml has changed", "agent": "the agent of agent.yaml has changed"}
GRADER = "def grade(context):\n    return 1.0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def plan_of(folder: Path, **settings: Any) -> Plan:
    given = Settings(quiet=True, **{"suites": (Path("agent.yaml"),), **settings})
    return make_plan(resolve_files(given, RunContext(scratch=folder)))


def configure(folder: Path, **keys: Any) -> None:
    write(folder, "agenteval.yaml", yaml.safe_dump(keys))


@pytest.mark.parametrize(
    ("named", "file"),
    [
        ("./evals/my-metrics.py:short", "evals/my-metrics.py"),
        ("evals.metrics:short", "evals/metrics.py"),
        ("evals:short", "evals/__init__.py"),
    ],
)
def test_the_code_of_a_metric_is_part_of_it(folder: Path, named: str, file: str) -> None:
    write(folder, file, "def short(observation):\n    return 1.0\n")
    write_suite(folder, [case("a")], agent={"command": ["cat"]})
    configure(folder, metrics=[{"python": named}])
    before = conditions(plan_of(folder))
    assert conditions(plan_of(folder)) == before
    write(folder, file, "def short(observation):\n    return 0.0\n")
    assert list(changes(before, conditions(plan_of(folder)))) == [SUITE["code"]]


def test_the_code_of_a_grader_is_part_of_the_suite(folder: Path) -> None:
    write(folder, "graders.py", GRADER)
    metrics = [{"type": "code", "grader": "graders:grade"}]
    write_suite(folder, [case("a")], agent={"command": ["cat"]}, evaluations={"metrics": metrics})
    before = conditions(plan_of(folder))
    write(folder, "graders.py", GRADER.replace("1.0", "0.0"))
    assert list(changes(before, conditions(plan_of(folder)))) == [SUITE["code"]]


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ({"command": ["python", "agent.py"]}, "agent.py"),
        ({"command": ["python", "-m", "mine"]}, "mine/__main__.py"),
        ({"command": ["python", "-m", "mine.agent"]}, "mine/agent.py"),
        ({"python": "mine.agent:reply"}, "src/mine/agent.py"),
        ({"replay": "answers.jsonl"}, "answers.jsonl"),
        ({"replay": "earlier"}, "earlier/results.json"),
        ({"replay": "earlier"}, "earlier/evaluation/summary.json"),
    ],
)
def test_the_files_of_an_agent_are_part_of_it(folder: Path, agent: Mapping[str, Any], file: str) -> None:
    write(folder, file, "one")
    write_suite(folder, [case("a")], agent=agent)
    before = conditions(plan_of(folder))
    write(folder, file, "two")
    assert list(changes(before, conditions(plan_of(folder)))) == [SUITE["agent"]]


@pytest.mark.parametrize(
    "file",
    [
        "tools.py",
        "mine/server.py",
    ],
)
def test_the_files_of_the_tools_of_a_model_agent_are_part_of_it(folder: Path, file: str) -> None:
    write_suite(folder, [case("a")], agent={"command": ["cat"]})
    tools = (
        FunctionTool("look", "Looks.", str(folder / "tools.py"), "look"),
        McpServer("one", "stdio", ("python", "server.py")),
        McpServer("two", "stdio", ("python", "-m", "mine.server")),
    )
    model = ModelAgentSpec(ModelSpec("openai", "gpt-4.1"), "Be kind.", tools)
    agent = AgentSpec("model", "openai/gpt-4.1", str(folder), options={"agent": model})
    plan = plan_of(folder)
    cases = [PlannedCase(item.suite, item.case, agent, 1) for item in plan.cases]
    write(folder, file, "one")
    before = conditions(replace(plan, cases=cases))
    write(folder, file, "two")
    assert list(changes(before, conditions(replace(plan, cases=cases)))) == [SUITE["agent"]]


@pytest.mark.parametrize(
    ("key", "name"),
    [("judge", "the configuration of the judge"), ("embeddings", "the configuration of the embedding model")],
)
def test_how_a_model_is_called_is_part_of_the_run(folder: Path, key: str, name: str) -> None:
    write_suite(folder, [case("a")], agent={"command": ["cat"]})
    model = {"model": "openai/m", "api_key": "secret-of-one"}
    configure(folder, **{key: {**model, "endpoint": "http://one"}})
    before = conditions(plan_of(folder))
    configure(folder, **{key: {**model, "endpoint": "http://two"}})
    assert list(changes(before, conditions(plan_of(folder)))) == [f"{name} of agent.yaml has changed"]


def traces(folder: Path, answer: str, *questions: str) -> None:
    write(folder, "t.jsonl", "\n".join(json.dumps({"input": text, "output": answer}) for text in questions))


def test_traces_are_part_of_the_run_by_their_file(folder: Path) -> None:
    evaluators = [{"name": "e", "type": "rule_based", "enabled": True, "rules": [{"check": "output_not_empty"}]}]
    write(folder, "agent.yaml", yaml.safe_dump({"evaluators": evaluators}))
    traces(folder, "yes", "zebra", "b")
    before = conditions(plan_of(folder, traces=Path("t.jsonl")))
    assert conditions(plan_of(folder, agent=f"replay:{folder}/t.jsonl")) == before
    selected = conditions(plan_of(folder, traces=Path("t.jsonl"), filter="zebra"))
    assert list(changes(before, selected)) == ["the selection of cases of agent.yaml has changed"]
    traces(folder, "no", "zebra", "b")
    assert list(changes(before, conditions(plan_of(folder, traces=Path("t.jsonl"))))) == [SUITE["agent"]]
