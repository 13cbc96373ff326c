"""Nobody waits for what they do not use: which libraries a command imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support import QUICKSTART, Ended, agenteval, case, echo_agent, python_program, write_suite

HEAVY = ("deepeval", "openai", "anthropic", "ollama", "nltk", "github", "scipy", "numpy", "sacrebleu", "rouge_score")
LIGHT = ("pydantic", "rich", "jinja2", "yaml", "httpx", "junit_xml")

# Runs a command and tells, after everything it wrote, which modules it has loaded.
PROGRAM = """
import json, sys
from agenteval.cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as error:
    status = error.code or 0
sys.stdout.flush()
print("\\n" + json.dumps([status, sorted(sys.modules)]))
"""


# What of ours only some runs need; each takes long to import, most for its models and data classes.
ONLY_WITH = {
    "agenteval.run.config_file": "an agenteval.yaml",
    "agenteval.run.config_keys": "an agenteval.yaml",
    "agenteval.suite.evaluation": "criteria or analyses",
    "agenteval.suite.formats.holodeck.tools_schema": "tools in an agent.yaml",
    "agenteval.suite.model_tools": "tools of a model agent",
    "agenteval.gate.comparer": "a baseline",
    "agenteval.gate.baseline": "a baseline",
    "agenteval.gate.decide": "a baseline",
    "agenteval.core.llm.calls": "judges, or an agent made of a model",
    "agenteval.results.analysis.answers": "criteria or analyses",
    "agenteval.agents.recorded_cases": "recorded traces",
    "agenteval.agents.otel_messages": "traces of OpenTelemetry",
    "agenteval.run.resume": "--resume",
    "agenteval.suite.formats.agentci.schema": "a suite of AgentCI",
    "agenteval.suite.formats.fluxloop.schema": "a suite of FluxLoop",
}
# Besides, what only runs need: `validate` calls no agent and writes no report.
ONLY_IN_RUNS = {"agenteval.run.pipeline", "agenteval.report.markdown", "agenteval.run.compare"}


def modules(directory: Path, *arguments: str | Path) -> set[str]:
    """The modules in memory after a command that went well."""
    done = python_program("-c", PROGRAM, *map(str, arguments), cwd=directory)
    assert done.returncode == 0, done.stderr
    status, names = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stdout + done.stderr
    return set(names)


def imports(directory: Path, *arguments: str | Path) -> set[str]:
    """The packages in memory after a command that went well."""
    return {name.partition(".")[0] for name in modules(directory, *arguments)}


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"]])
def test_help_and_version_import_next_to_nothing(tmp_path: Path, arguments: list[str]) -> None:
    assert not imports(tmp_path, *arguments) & {*HEAVY, *LIGHT, "asyncio"}


def test_the_version_imports_nothing_of_ours_but_the_command_line(tmp_path: Path) -> None:
    own = {name for name in modules(tmp_path, "--version") if name.partition(".")[0] == "agenteval"}
    parts = ("cli", "core", "core.errors", "core.version", "run", "run.options")
    others = {name for name in own if not name.startswith("agenteval.cli.")}
    assert others == {"agenteval", *(f"agenteval.{name}" for name in parts)}
    assert not own & {"agenteval.cli.init", "agenteval.cli.explanations", "agenteval.cli.output"}


def test_the_version_is_that_of_the_distribution(tmp_path: Path) -> None:
    from importlib.metadata import version

    assert agenteval("--version", cwd=tmp_path) == Ended(0, f"agenteval {version('agenteval-action')}\n", "")


def test_the_module_runs_like_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agenteval", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == agenteval("--version", cwd=tmp_path).out


def test_validation_imports_no_model_and_no_template(tmp_path: Path) -> None:
    unused = {"deepeval", "openai", "anthropic", "ollama", "github", "scipy", "jinja2", "rich"}
    assert not imports(tmp_path, "validate", QUICKSTART) & unused


def test_a_plain_suite_imports_nothing_that_only_others_need(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps({"case": "a", "response": "42"}) + "\n")
    metrics = [{"type": "standard", "metric": "equality"}]
    write_suite(tmp_path, [case("a", "42", "42")], evaluations={"metrics": metrics})
    run = modules(tmp_path, "run", "--agent", "replay:answers.jsonl")
    assert run >= ONLY_IN_RUNS
    assert not {name: ONLY_WITH[name] for name in ONLY_WITH.keys() & run}
    validated = modules(tmp_path, "validate", "--agent", "replay:answers.jsonl")
    assert not validated & {*ONLY_WITH, *ONLY_IN_RUNS, "agenteval.results.importers.detect"}


def test_what_only_some_runs_need_is_called_that() -> None:
    for name in {*ONLY_WITH, *ONLY_IN_RUNS}:
        assert find_spec(name) is not None, name


def test_a_run_of_simple_metrics_imports_no_heavy_library(tmp_path: Path) -> None:
    metrics = [{"type": "standard", "metric": name} for name in ("numeric", "equality", "f1_score")]
    cases = [{**case("a", "42", "42"), "expected_tools": []}]
    write_suite(tmp_path, cases, agent=echo_agent(tmp_path), evaluations={"metrics": metrics})
    assert not imports(tmp_path, "run") & {*HEAVY, "rich", "httpx"}


def test_a_run_without_judges_imports_no_model(tmp_path: Path) -> None:
    found = imports(tmp_path, "run", QUICKSTART)
    assert not found & {"deepeval", "openai", "anthropic", "ollama", "github", "scipy"}
    assert {"sacrebleu", "rouge_score"} <= found
