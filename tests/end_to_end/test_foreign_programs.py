"""Programs and Python agents of other people's making, evaluated without an adapter."""

from __future__ import annotations

import re
import site
import sys
import textwrap
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.mistakes import shown
from tests.support import agenteval, case, results_in, statuses, write_suite


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


SHOP = {
    "src/shop/__init__.py": "",
    "src/shop/tools.py": """\
        import sys

        def opening_hours(day: str) -> str:
            return "closed" if day == "Sunday" else "9 to 6"

        def python() -> str:
            return sys.prefix
        """,
    "src/shop/agent.py": """\
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel
        from shop import tools

        def model(messages, info):
            parts = [part for message in messages for part in message.parts]
            questions = [part.content for part in parts if part.part_kind == "user-prompt"]
            last = parts[-1]
            if last.part_kind == "tool-return":
                return ModelResponse(parts=[TextPart(last.content)])
            if "python" in questions[-1]:
                return ModelResponse(parts=[ToolCallPart("python", {})])
            day = "Sunday" if "Sunday" in " ".join(questions) else "Monday"
            return ModelResponse(parts=[ToolCallPart("opening_hours", {"day": day})])

        agent = Agent(FunctionModel(model), tools=[tools.opening_hours, tools.python])
        """,
    "agenteval.yaml": """\
        agents:
          default:
            python: "shop.agent:agent"
            interpreter: .venv/bin/python
        """,
    "agent.yaml": """\
        evaluations:
          metrics: [{type: standard, metric: equality}]
        test_cases:
          - name: environment
            input: Which python is this?
            ground_truth: "@prefix"
          - name: conversation
            turns:
              - input: When are you open?
                ground_truth: 9 to 6
                expected_tools: [{name: opening_hours, args: {day: Monday}}]
              - input: And on Sunday?
                ground_truth: closed
                expected_tools: [{name: opening_hours, args: {day: Sunday}}]
              - input: Are you sure?
                ground_truth: closed
        """,
}


def test_an_agent_of_a_framework_in_its_own_environment_is_evaluated(tmp_path: Path) -> None:
    own = tmp_path / ".venv"
    venv.create(own, symlinks=True)
    packages = own / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (packages / "framework.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    write(tmp_path, {name: text.replace("@prefix", str(own)) for name, text in SHOP.items()})
    ended = agenteval("run", cwd=tmp_path)
    assert ended.status == 0, ended.text
    assert statuses(results_in(tmp_path)) == {"environment": "passed", "conversation": "passed"}


@pytest.mark.parametrize(
    ("code", "target", "status", "said"),
    [
        ("import not_installed", "agent:reply", 3, "No module named 'not_installed'"),
        ("raise KeyError('MODEL')", "agent.py:reply", 3, "KeyError: 'MODEL'"),
        ("", "agent:reply", 2, "module 'agent' has no 'reply'"),
        ("", "agents:reply", 2, "cannot import module 'agents'"),
    ],
)
def test_broken_code_is_not_a_wrong_setting(tmp_path: Path, code: str, target: str, status: int, said: str) -> None:
    agent = f'agents:\n  default: {{python: "{target}", interpreter: {sys.executable}}}\n'
    write(tmp_path, {"agent.py": code, "agenteval.yaml": agent})
    write_suite(tmp_path, [case("a")])
    ended = agenteval("run", cwd=tmp_path)
    assert ended.status == status, ended.text
    (mistake,) = shown(ended.err)
    assert mistake.place == "agenteval.yaml:2"
    assert mistake.title.startswith("agent: ")
    assert said in mistake.title
    assert "Traceback" not in ended.text
    assert said in agenteval("validate", cwd=tmp_path).text


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [("import not_installed", 3, "No module named 'not_installed'"), ("", 2, "module 'grade' has no 'check'")],
)
def test_a_broken_grader_is_not_a_wrong_setting(tmp_path: Path, code: str, status: int, said: str) -> None:
    write(
        tmp_path, {"grade.py": code, "agenteval.yaml": f"agents: {{default: [{sys.executable}, -c, 'print(1)']}}\n"}
    )
    write_suite(tmp_path, [case("a")], evaluations={"metrics": [{"type": "code", "grader": "grade:check"}]})
    for command in ("run", "validate"):
        ended = agenteval(command, cwd=tmp_path)
        assert (ended.status, said in ended.text) == (status, True), ended.text
        (mistake,) = shown(ended.err)
        assert re.fullmatch(r"(?:.*/)?agent\.yaml:4", mistake.place), mistake
        assert mistake.title.startswith("the grader 'grade:check' cannot be used")
        assert "^ grader\n" in mistake.text
