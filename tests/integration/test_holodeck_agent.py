"""Agents of HoloDeck projects that HoloDeck runs, here stood in for by a package of the same shape.

``tests/peers/test_holodeck.py`` runs the real package.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.integration.holodeck_stand_in import FILES
from tests.mistakes import shown
from tests.support import Ended, agenteval, environment

PROJECT = """\
name: shop
model: {provider: openai, name: gpt-4o-mini}
instructions: Answer briefly.
tools:
  - {name: kb, description: the documents, type: vectorstore, source: data/faq.txt}
evaluations:
  metrics: [{type: standard, metric: f1_score}]
test_cases:
  - name: hours
    input: opening hours
    ground_truth: "1: opening hours 9 to 6"
    expected_tools: [kb, {name: price, args: {item: 1}}]
  - name: turns
    turns:
      - {input: opening hours, ground_truth: "1: opening hours 9 to 6"}
      - {input: returns, ground_truth: "2: returns within 30 days"}
"""

CASES = """\
evaluations:
  metrics: [{type: standard, metric: equality}]
test_cases: [{name: a, input: returns, ground_truth: "1: returns within 30 days"}]
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package, for ``PYTHONPATH``."""
    directory = tmp_path_factory.mktemp("packages")
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(textwrap.dedent(text))
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/faq.txt").write_text("opening hours 9 to 6\nreturns within 30 days\n")
    (tmp_path / "agent.yaml").write_text(PROJECT)
    return tmp_path


def run(project: Path, packages: Path, *arguments: str) -> Ended:
    return agenteval(
        "run", *arguments, "--out", "out", cwd=project, env=environment() | {"PYTHONPATH": str(packages)}
    )


def turns(project: Path) -> dict[str, list[dict[str, Any]]]:
    results = json.loads((project / "out/results.json").read_text())
    return {case["name"]: case["iterations"][0]["turns"] for suite in results["suites"] for case in suite["cases"]}


def only(project: Path, *inputs: str) -> None:
    """Let the cases be these inputs."""
    head = PROJECT[: PROJECT.index("test_cases:")]
    cases = [{"name": text, "input": text, "ground_truth": text} for text in inputs]
    (project / "agent.yaml").write_text(f"{head}test_cases: {json.dumps(cases)}\n")


def test_answers_calls_passages_and_usage_come_back(project: Path, stand_in: Path) -> None:
    ended = run(project, stand_in, "agent.yaml")
    assert ended.status == 0, ended.text
    found = turns(project)
    (hours,) = found["hours"]
    assert hours["response"] == "1: opening hours 9 to 6"
    # Results are paired by their ids, not by their order.
    assert [(call["name"], call["args"], call["result"]) for call in hours["tool_calls"]] == [
        ("kb_search", {"query": "opening hours"}, "opening hours 9 to 6"),
        ("price", {"item": 1}, 5),
    ]
    assert hours["retrieval_context"] == ["opening hours 9 to 6"]
    assert (hours["usage"]["input_tokens"], hours["usage"]["output_tokens"]) == (11, 2)
    # One session for all turns of a case.
    assert [turn["response"][0] for turn in found["turns"]] == ["1", "2"]
    log = (project / "log.txt").read_text().splitlines()
    assert log[0] == "made for test by shop with None"
    assert sorted(log[1:]) == ["closed after 1", "closed after 2", "torn down"]


def test_without_the_package_one_message_has_the_command_that_installs_it(project: Path, tmp_path: Path) -> None:
    ended = run(project, tmp_path, "agent.yaml")
    assert ended.status == 2
    (mistake,) = shown(ended.text)
    assert mistake.place == "agent.yaml:5"
    assert mistake.title.startswith("agent: HoloDeck runs this agent, and ")
    (line,) = [line for line in mistake.text.splitlines() if " = help: " in line]
    assert line.endswith("-m pip install 'holodeck-ai[openai-agents]' exceptiongroup")


class TestValidate:
    """``validate`` checks the project; only ``run`` makes the index, which asks a model."""

    def validate(self, project: Path, packages: Path, *arguments: str) -> Ended:
        variables = environment() | {"PYTHONPATH": str(packages)}
        return agenteval("validate", *arguments, "agent.yaml", cwd=project, env=variables)

    def test_a_missing_package_is_one_warning_with_the_command_that_installs_it(
        self, project: Path, tmp_path: Path
    ) -> None:
        ended = self.validate(project, tmp_path)
        assert (ended.status, ended.err) == (0, "")
        first, warning = ended.out.splitlines()
        assert first == "agent.yaml: ok, holodeck, 2 cases"
        assert warning.startswith("warning: agent.yaml:5: agent: HoloDeck runs this agent, and ")
        assert warning.endswith("-m pip install 'holodeck-ai[openai-agents]' exceptiongroup")

    def test_a_refused_project_is_a_mistake(self, project: Path, stand_in: Path) -> None:
        (project / "agent.yaml").write_text(PROJECT.replace("gpt-4o-mini", "refused"))
        ended = self.validate(project, stand_in)
        assert ended.status == 2
        (mistake,) = shown(ended.text)
        assert mistake.title == "agent: HoloDeck refuses the project: model.name: no such model"

    def test_a_dry_run_needs_what_the_run_needs(self, project: Path, tmp_path: Path) -> None:
        ended = run(project, tmp_path, "agent.yaml", "--dry-run")
        assert ended.status == 2
        (mistake,) = shown(ended.text)
        assert mistake.title.startswith("agent: HoloDeck runs this agent, and ")


def test_failures_of_the_agent_are_errors_of_their_cases(project: Path, stand_in: Path) -> None:
    only(project, "raise", "fail", "silent")
    run(project, stand_in, "agent.yaml")
    found = {name: steps[0] for name, steps in turns(project).items()}
    assert found["raise"]["error"] == "HoloDeck's agent failed: OSError: connection lost"
    assert found["fail"]["error"] == "HoloDeck's agent failed: RateLimitError: slow down"
    assert (found["silent"]["response"], found["silent"]["usage"]) == ("", None)
    assert found["silent"]["tool_calls"][0]["error"] == "no result received"


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (("gpt-4o-mini", "refused"), 2, "HoloDeck refuses the project: model.name: no such model"),
        (("data/faq.txt", "data/none.txt"), 3, "HoloDeck cannot index the documents: tool 'kb': [Errno 2]"),
    ],
)
def test_a_project_that_holodeck_does_not_run(
    project: Path, stand_in: Path, change: tuple[str, str], status: int, message: str
) -> None:
    (project / "agent.yaml").write_text(PROJECT.replace(*change))
    ended = run(project, stand_in, "agent.yaml")
    assert ended.status == status
    (mistake,) = shown(ended.text)
    assert mistake.place == "agent.yaml:5"
    assert mistake.title.startswith(f"agent: {message}")


def test_agenteval_yaml_has_holodeck_run_any_project(project: Path, stand_in: Path) -> None:
    (project / "shop").mkdir()
    for name in ("data", "agent.yaml"):
        (project / name).rename(project / "shop" / name)
    (project / "agenteval.yaml").write_text("agents: {default: {holodeck: shop/agent.yaml, config: {a: 1}}}\n")
    (project / "cases.yaml").write_text(CASES)
    (project / "shop/config.yaml").write_text("providers: {openai: {provider: openai, name: other}}\n")
    ended = run(project, stand_in, "cases.yaml")
    assert ended.status == 0, ended.text
    assert turns(project)["a"][0]["response"] == "1: returns within 30 days"
    assert "with {'from': ['providers']}" in (project / "shop/log.txt").read_text()


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("none.yaml", "none.yaml: no such file"),
        ("cases.yaml", "cases.yaml: describes no agent; add `model` and `instructions`"),
        ("model.yaml", "model.yaml: describes no agent; add `model` and `instructions`"),
        ("words.yaml", "words.yaml: describes no agent; add `model` and `instructions`"),
        ("agent.json", "'agent.json' is not a YAML file; name the agent.yaml of the project"),
    ],
)
def test_a_file_without_an_agent(project: Path, stand_in: Path, written: str, problem: str) -> None:
    (project / "agenteval.yaml").write_text(f"agents: {{default: {{holodeck: {written}}}}}\n")
    (project / "cases.yaml").write_text(CASES)
    (project / "model.yaml").write_text("name: a\nmodel: {provider: openai, name: gpt-4.1}\n")
    (project / "words.yaml").write_text("name: a\ninstructions: Answer.\n")
    ended = run(project, stand_in, "cases.yaml")
    assert ended.status == 2
    (mistake,) = shown(ended.text)
    assert mistake.says(problem)
