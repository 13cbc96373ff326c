"""AgentCI suites on agents and tools of the really installed frameworks, with scripted models.

``make test-frameworks`` installs each framework in an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support import AGENTEVAL, ROOT, environment

pytestmark = pytest.mark.peer

APPS = Path(__file__).parent / "apps"
ENVIRONMENTS = Path(os.environ.get("FRAMEWORKS", ROOT / ".venv-frameworks"))
# App → environment and dependency.
FRAMEWORKS = {
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "langchain": ("langchain", "langchain"),
    "langgraph": ("langchain", "langgraph"),
    "openai_agents": ("openai_agents", "openai-agents"),
    "llamaindex": ("llamaindex", "llama-index-core"),
    "agno": ("agno", "agno"),
    "google_adk": ("google_adk", "google-adk"),
}
SUITE = """\
[eval]
description = "Weather"
type = "accuracy"
targets.{kind}s = ["{name}"]

[[eval.cases]]
{keys}
"""
AGENT = """\
prompt = "What is the weather in Oslo?"
output = "It is rain."
tools = [{ name = "weather", args = { city = "Oslo" } }]
"""


def run(folder: Path, framework: str, **suites: str) -> dict[str, str]:
    """Run suites in a repository with the framework's app; return the status of each suite's only case."""
    directory, dependency = FRAMEWORKS[framework]
    (folder / "requirements.txt").write_text(f"{dependency}\n")
    (folder / "app.py").write_text((APPS / f"{framework}.py").read_text())
    evals = folder / ".agentci" / "evals"
    evals.mkdir(parents=True)
    for name, text in suites.items():
        (evals / f"{name}.toml").write_text(text)
    python = ENVIRONMENTS / directory / "bin" / "python"
    ended = subprocess.run(
        [AGENTEVAL, "run", "--quiet"],
        cwd=folder,
        env=environment(AGENTEVAL_PYTHON=str(python)),
        capture_output=True,
        text=True,
        # Some frameworks take long to import.
        timeout=600,
        check=False,
    )
    assert ended.returncode in {0, 1, 3}, ended.stderr
    results = json.loads((folder / "agenteval-report" / "results.json").read_text())
    cases = {suite["name"]: suite["cases"][0] for suite in results["suites"]}
    return {name: _told(case) for name, case in cases.items()}


def _told(case: dict) -> str:  # type: ignore[type-arg]
    (turn,) = case["iterations"][0]["turns"]
    reasons = [score.get("reason") or score.get("error") for score in turn["scores"]]
    return str(case["status"]) if case["status"] == "passed" else f"{turn.get('error')} {turn['response']} {reasons}"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_agents_and_tools_are_found_and_run(tmp_path: Path, framework: str) -> None:
    agent = SUITE.format(kind="agent", name="assistant", keys=AGENT)
    tool = SUITE.format(kind="tool", name="weather", keys='context = { city = "Oslo" }\noutput.contains = "rain"')
    assert run(tmp_path, framework, agent=agent, tool=tool) == {"agent": "passed", "tool": "passed"}


def test_the_function_of_a_toolkit_is_called(tmp_path: Path) -> None:
    tool = SUITE.format(kind="tool", name="Forecasts", keys='context = { city = "Oslo" }\noutput = "snow"')
    assert run(tmp_path, "agno", toolkit=tool) == {"toolkit": "passed"}
