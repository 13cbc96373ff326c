"""Hostile ``${VARIABLE}`` in suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import (
    EQUALITY,
    Ended,
    case,
    echo_agent,
)

STOLEN = "${GITHUB_TOKEN} ${OPENAI_API_KEY} ${GITHUB_ENV} ${AGENTEVAL_CACHE:-x} ${ACTIONS_RUNTIME_TOKEN}"
SECRETS = {
    "GITHUB_TOKEN": "ghs_stolen0123456789",
    "OPENAI_API_KEY": "sk-stolen0123456789",
    "GITHUB_ENV": "/stolen/set_env",
    "AGENTEVAL_CACHE": "/stolen/cache",
    "ACTIONS_RUNTIME_TOKEN": "stolen-runtime",
}
METRIC = '{type: geval, name: "@", criteria: "@", evaluation_steps: ["@"], model: {provider: openai, name: gpt-4o}}'
# What describes the agent, and counts unless the suite names another one
HOLODECK_AGENT = """\
description: "@"
model: {provider: openai, name: gpt-4o}
instructions: {inline: "@"}
response_format: {type: object, properties: {a: {description: "@"}}}
tools:
- {name: a, description: "@", type: prompt, template: "@", parameters: {x: {description: "@"}}}
- {name: b, description: "@", type: mcp, command: "@", args: ["@"], config: {api_key: "@"}, encoding: "@"}
- {name: c, description: d, type: mcp, transport: http, url: "https://example.org/@"}
"""
HOLODECK_CASES = f"""\
name: "@"
agent:
  command: ["@"]
  config: {{api_key: "@"}}
evaluations: {{metrics: [{METRIC}]}}
test_cases:
- name: "@"
  input: "@"
  ground_truth: "@"
  retrieval_context: ["@"]
  expected_tools: [{{name: "@", args: {{api_key: "@"}}}}]
  files: [{{url: "https://example.org/@", type: pdf, description: "@"}}]
- turns: [{{input: "@", ground_truth: "@", turn_config: {{api_key: "@", headers: {{a: "@"}}}}}}]
"""
AGENTCI = """\
[eval]
name = "@"
description = "@"
type = "llm"
targets.agents = ["@"]
[eval.llm]
model = "@"
prompt = "@"
output_schema = { api_key = "@" }
[[eval.cases]]
prompt = "@"
context = { api_key = "@", env = { A = "@" } }
criteria = ["@"]
reference_response = "@"
parameters = { headers = { Authorization = "@" } }
tools = [{ name = "@", args = { api_key = "@" } }]
output = { contains = "@" }
"""
FLUXLOOP = """\
evaluation_goal: {text: "@"}
evaluators:
- {name: "@", type: llm_judge, model: "@", prompt_template: "@", metadata: {api_key: "@"}}
- {name: a, type: rule_based, rules: [{check: contains, keywords: ["@"], target: "@"}]}
report: {template_path: "@"}
additional_analysis: {comparison: {baseline_path: "@"}}
"""
FLUXLOOP_INPUT = """\
personas: [{name: "@", description: "@", custom_attributes: {api_key: "@"}}]
base_inputs: [{input: "@", metadata: {api_key: "@"}}]
input_template: "@"
"""
CONFIG = """\
agents:
  default:
    command: ["@"]
    config: {api_key: "@", headers: {Authorization: "@"}}
metrics: [{type: contains, id: "@", suites: ["@"], options: {api_key: "@"}}]
personas: {a: ["@"]}
"""
FILES = {
    "agent.yaml": {"agent.yaml": HOLODECK_CASES},
    "agent.yaml of an agent": {"agent.yaml": f"{HOLODECK_AGENT}test_cases: [{{input: hi, ground_truth: hi}}]\n"},
    "cases.yaml": {
        "agent.yaml": "agent: {command: [cat]}\ntest_cases_file: cases.yaml\n",
        "cases.yaml": '- {name: "@", input: "@", turns: [{input: "@"}]}\n',
    },
    "a.toml": {".agentci/evals/a.toml": AGENTCI},
    "configs/evaluation.yaml": {"configs/evaluation.yaml": FLUXLOOP, "configs/input.yaml": FLUXLOOP_INPUT},
    "agenteval.yaml": {"agenteval.yaml": CONFIG, "agent.yaml": "agent: default\ntest_cases: [{input: hi}]\n"},
}


Run = Callable[..., Ended]


@pytest.fixture
def run(command: Command, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a CI job with variables."""

    def ran(word: str, variables: Mapping[str, str] = SECRETS) -> Ended:
        with monkeypatch.context() as patch:
            for name, value in {"CI": "true", **variables}.items():
                patch.setenv(name, value)
            return command(word)

    return ran


@pytest.mark.parametrize("name", FILES)
def test_no_text_of_any_format_takes_a_secret(tmp_path: Path, run: Run, name: str) -> None:
    expected = 0
    for path, text in FILES[name].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@", STOLEN), encoding="utf-8")
        expected += text.count("@") * len(SECRETS)
    told = []
    # Whether the variables are set makes no difference.
    for command, variables in (("run", SECRETS), ("run", {}), ("validate", SECRETS)):
        ended = run(command, variables)
        assert ended.status == 2, ended.text
        assert "stolen" not in ended.text
        said = [mistake for mistake in shown(ended.err) if "environment variable " in mistake.title]
        told.append(sorted((mistake.title, mistake.place, mistake.more) for mistake in said))
    assert told[0] == told[1] == told[2]
    # One secret makes fewer mistakes than are shown of a file, so that every text is counted.
    for secret in SECRETS:
        for path, text in FILES[name].items():
            (tmp_path / path).write_text(text.replace("@", f"${{{secret}}}"), encoding="utf-8")
        ended = run("validate")
        of_it = [mistake for mistake in shown(ended.err) if f"environment variable {secret} " in mistake.title]
        assert sum(1 + mistake.more for mistake in of_it) == expected // len(SECRETS), ended.err


def test_the_agent_of_a_file_takes_no_secret_where_another_agent_is_asked(tmp_path: Path, run: Run) -> None:
    rest = {"agent": echo_agent(tmp_path), "evaluations": {"metrics": [EQUALITY]}, "test_cases": [case("a")]}
    text = f"name: a\n{HOLODECK_AGENT.replace('@', STOLEN)}{yaml.safe_dump(rest)}"
    (tmp_path / "agent.yaml").write_text(text, encoding="utf-8")
    ended = run("run")
    assert ended.status == 0, ended.text
    assert "stolen" not in ended.text
    for file in (tmp_path / "agenteval-report").rglob("*"):
        assert file.is_dir() or b"stolen" not in file.read_bytes()


CREDENTIALS = """\
name: credentials
model: {provider: openai, name: gpt-4o, api_key: "${OPENAI_API_KEY}"}
instructions: {inline: hi}
tools:
- {name: b, description: d, type: mcp, command: npx, env: {BRAVE_API_KEY: "${OPENAI_API_KEY}"}}
- {name: c, description: d, type: mcp, transport: http, url: "https://e.org", headers: {A: "Bearer ${GITHUB_TOKEN}"}}
agent: {command: [cat], env: {KEY: "${OPENAI_API_KEY}"}}
evaluations: {metrics: [{type: standard, metric: equality}]}
test_cases: [{input: hi, ground_truth: hi}]
"""


def test_keys_for_credentials_take_them_but_never_a_command_file(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(CREDENTIALS, encoding="utf-8")
    fine = run("validate")
    assert fine.status == 0, fine.text
    line = next(line for line in CREDENTIALS.splitlines() if line.startswith("agent: "))
    described = CREDENTIALS.replace("GITHUB_TOKEN", "GITHUB_ENV").replace(f"{line}\n", "")
    commanded = CREDENTIALS.replace(line, line.replace("OPENAI_API_KEY", "GITHUB_ENV"))
    for text, place in ((described, "agent.yaml:6: tools[1].headers.A"), (commanded, "agent.yaml:7: agent.env.KEY")):
        file.write_text(text, encoding="utf-8")
        refused = run("validate")
        assert refused.status == 2
        (mistake,) = shown(refused.err)
        assert mistake.says(f"{place}: environment variable GITHUB_ENV belongs to the runner"), refused.err
