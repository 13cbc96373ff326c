"""Hostile ``${VARIABLE}`` in suites: as processes, on a laptop and in the action."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.test_action import Runner, Step, pull_request
from tests.mistakes import shown
from tests.support import (
    EQUALITY,
    agenteval,
    case,
    echo_agent,
    environment,
    listening,
    open_folder,
    results_in,
    write_suite,
)

STOLEN = "${GITHUB_TOKEN} ${OPENAI_API_KEY} ${GITHUB_ENV} ${AGENTEVAL_CACHE:-x} ${ACTIONS_RUNTIME_TOKEN}"
SECRETS = {
    "GITHUB_TOKEN": "ghs_stolen0123456789",
    "OPENAI_API_KEY": "sk-stolen0123456789",
    "GITHUB_ENV": "/stolen/set_env",
    "AGENTEVAL_CACHE": "/stolen/cache",
    "ACTIONS_RUNTIME_TOKEN": "stolen-runtime",
}
METRIC = (
    '{type: geval, name: "@", criteria: "@", evaluation_steps: ["@"], '
    'model: {provider: openai, name: "@", endpoint: "@"}}'
)
# What describes the agent, and counts unless the suite names another one
HOLODECK_AGENT = """\
description: "@"
model: {provider: openai, name: "@", endpoint: "@", api_version: "@"}
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
judge: {model: "@", endpoint: "@"}
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


@pytest.mark.parametrize("name", FILES)
def test_no_text_of_any_format_takes_a_secret(tmp_path: Path, name: str) -> None:
    expected = 0
    for path, text in FILES[name].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@", STOLEN), encoding="utf-8")
        expected += text.count("@") * len(SECRETS)
    told = []
    # Whether the variables are set makes no difference.
    for command, variables in (("run", SECRETS), ("run", {}), ("validate", SECRETS)):
        ended = agenteval(command, cwd=tmp_path, env=environment(**variables))
        assert ended.status == 2, ended.text
        assert "stolen" not in ended.text
        said = [mistake for mistake in shown(ended.err) if "environment variable " in mistake.title]
        told.append(sorted((mistake.title, mistake.place, mistake.more) for mistake in said))
    assert told[0] == told[1] == told[2]
    assert sum(1 + more for _, _, more in told[0]) == expected
    for secret in SECRETS:
        of_it = [more for title, _, more in told[0] if f"environment variable {secret} " in title]
        assert len(of_it) + sum(of_it) == expected // len(SECRETS)


def test_the_agent_of_a_file_takes_no_secret_where_another_agent_is_asked(tmp_path: Path) -> None:
    rest = {"agent": echo_agent(tmp_path), "evaluations": {"metrics": [EQUALITY]}, "test_cases": [case("a")]}
    text = f"name: a\n{HOLODECK_AGENT.replace('@', STOLEN)}{yaml.safe_dump(rest)}"
    (tmp_path / "agent.yaml").write_text(text, encoding="utf-8")
    ended = agenteval("run", cwd=tmp_path, env=environment(**SECRETS))
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


def test_keys_for_credentials_take_them_but_never_a_command_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(CREDENTIALS, encoding="utf-8")
    fine = agenteval("validate", cwd=tmp_path, env=environment(**SECRETS))
    assert fine.status == 0, fine.text
    line = next(line for line in CREDENTIALS.splitlines() if line.startswith("agent: "))
    described = CREDENTIALS.replace("GITHUB_TOKEN", "GITHUB_ENV").replace(f"{line}\n", "")
    commanded = CREDENTIALS.replace(line, line.replace("OPENAI_API_KEY", "GITHUB_ENV"))
    for text, place in ((described, "agent.yaml:6: tools[1].headers.A"), (commanded, "agent.yaml:7: agent.env.KEY")):
        file.write_text(text, encoding="utf-8")
        refused = agenteval("validate", cwd=tmp_path, env=environment(**SECRETS))
        assert refused.status == 2
        (mistake,) = shown(refused.err)
        assert mistake.says(f"{place}: environment variable GITHUB_ENV belongs to the runner"), refused.err


@pytest.fixture
def runner(nothing_there: str) -> Iterator[Runner]:
    """A machine whose suite uses a secret in an input."""
    with open_folder() as folder:
        yield _prepared(Runner(folder, nothing_there))


def _prepared(found: Runner) -> Runner:
    agent = echo_agent(found.workspace)
    write_suite(found.workspace, [{**case("a"), "input": "hello ${SHOP_TOKEN}", "ground_truth": "*"}], agent=agent)
    (found.workspace / "agenteval.yaml").write_text("allow_env: [SHOP_TOKEN]\n", encoding="utf-8")
    return found


def content(text: str) -> dict[str, str]:
    """A file as GitHub sends it."""
    return {"type": "file", "encoding": "base64", "content": b64encode(text.encode()).decode()}


def proposed(runner: Runner, answer: Any, status: int = 200, event: str = "pull_request") -> tuple[Step, list[str]]:
    """Run on a pull request with an answer for the base's file; return the step and the requested files."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps(answer if "/contents/" in self.path else {}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with listening(Handler) as url:
        given = {"GITHUB_API_URL": url, "SHOP_TOKEN": "tok-0123456789"}
        step = runner.step(event, pull_request("stranger/bot"), variables=given, baseline="none", comment="never")
    assert "tok-0123456789" not in step.written(runner.workspace)
    return step, [path for path in asked if "/contents/" in path]


WHERE = f"/repos/org/bot/contents/agenteval.yaml?ref={'b' * 40}"


def test_the_list_of_the_base_branch_counts(runner: Runner) -> None:
    step, asked = proposed(runner, content("allow_env: ['SHOP_*']\n"))
    assert asked == [WHERE]
    answer = results_in(runner.workspace).cases()[0][1].iterations[0].turns[0]
    assert (answer.input, answer.response) == ("hello ***", "hello ***"), step.ended.text


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (content("iterations: 1\n"), 200, "merge that change to the base branch first"),
        (content("allow_env: [OTHER]\n"), 200, "merge that change to the base branch first"),
        (content("allow_env: SHOP_TOKEN\n"), 200, "agenteval.yaml on the base branch:1: allow_env: must be a list"),
        (content("allow_env: [[SHOP_TOKEN]]\n"), 200, "must be text"),
        (content("a: &a [*a]\n"), 200, "cannot be read: agenteval.yaml on the base branch"),
        (content("[" * 5000), 200, "cannot be read: agenteval.yaml on the base branch"),
        (content("- a\n"), 200, "merge that change to the base branch first"),
        ({"type": "file", "encoding": "none", "content": ""}, 200, "has more than"),
        ({"type": "symlink", "encoding": "base64", "content": ""}, 200, "is not a plain file there"),
        ([content("allow_env: [SHOP_TOKEN]\n")], 200, "is not a plain file there"),
        ({"type": "file", "encoding": "base64", "content": "/w=="}, 200, "is not UTF-8"),
        ({"type": "file", "encoding": "base64", "content": 5}, 200, "has more than"),
        ({"message": "Not Found"}, 404, "It does not exist, or the token may not see it"),
        ({"message": "no"}, 403, "cannot be read: cannot read agenteval.yaml of org/bot"),
    ],
)
def test_without_the_base_branch_nothing_is_inserted(runner: Runner, answer: Any, status: int, said: str) -> None:
    step, asked = proposed(runner, answer, status)
    assert step.ended.status == 2
    assert set(asked) == {WHERE}
    assert said in step.ended.text, step.ended.text
    assert "agent.yaml" in step.ended.text
    assert "SHOP_TOKEN has the name of a secret" in step.ended.text
    assert "Traceback" not in step.ended.text


def test_no_request_unless_a_text_needs_it(runner: Runner) -> None:
    write_suite(runner.workspace, [case("a")], agent=echo_agent(runner.workspace))
    step, asked = proposed(runner, content("allow_env: [SHOP_TOKEN]\n"))
    assert (step.ended.status, asked) == (0, []), step.ended.text


@pytest.mark.long
def test_a_push_has_one_list(runner: Runner) -> None:
    step = runner.step("push", variables={"SHOP_TOKEN": "tok-0123456789"})
    assert results_in(runner.workspace).cases()[0][1].iterations[0].turns[0].input == "hello ***", step.ended.text
