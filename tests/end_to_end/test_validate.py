"""`agenteval validate` names everything that is wrong, in all files, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.mistakes import shown

CONFIG = """
agent: {}
iterations: 0
agents:
  default: {comand: [x]}
gate: {fail_on: [failure]}
llm: {timeout: soon}
"""
HOLODECK = """
evaluatons: {}
evaluations:
  metrics:
    - {type: standard, metric: blue}
    - {type: geval, name: kind}
test_cases:
  - {name: one, inptu: hello}
  - {name: two, input: hi}
  - {name: two, input: hi again, files: [{path: none.txt, type: text}], ground_truth: "${NOT_SET_HERE}"}
  - {name: three, turns: []}
  - {name: four, input: x, expected_tools: [{name: pay, args: {sum: {regex: "("}}}]}
"""
AGENTCI = """
[eval]
description = "x"
type = "acuracy"
targets.agents = ["*"]
[[eval.cases]]
promt = "x"
output.contain = "y"
"""
FLUXLOOP = """
evaluators:
  - name: a
    type: rule_based
    rules: [{check: sucess}, {check: latency_under}]
  - {name: b, type: llm_juge}
agregate: {}
"""
SAID = """
agenteval.yaml:2: agent: unknown key; did you mean 'agents'?
agenteval.yaml:3: iterations: must be greater than or equal to 1
agenteval.yaml:5: agents.default.comand: unknown key; did you mean 'command'?
agenteval.yaml:6: gate.fail_on: 'failure' is not allowed
agenteval.yaml:7: llm.timeout: 'soon' is not a duration
agent.yaml:2: evaluatons: unknown key; did you mean 'evaluations'?
agent.yaml:5: evaluations.metrics[0].metric: 'blue' is not allowed; did you mean 'bleu'?
agent.yaml:6: evaluations.metrics[1].criteria: this key is required
agent.yaml:8: test_cases[0].inptu: unknown key; did you mean 'input'?
agent.yaml:10: environment variable NOT_SET_HERE is not set
agent.yaml:10: test_cases[2].files[0].path: there is no file none.txt
agent.yaml:11: test_cases[3].turns: must have at least 1 entry
agent.yaml:12: test_cases[4].expected_tools[0].args: args.sum: '(' is not a regular expression
.agentci/evals/a.toml:4: eval.type: 'acuracy' is not allowed; did you mean 'accuracy'?
.agentci/evals/a.toml:7: eval.cases[0].promt: unknown key; did you mean 'prompt'?
.agentci/evals/a.toml:8: eval.cases[0].output.contain: unknown key; did you mean 'contains'?
configs/evaluation.yaml:5: evaluators[0].rules[0].check: 'sucess' is not allowed; did you mean 'success'?
configs/evaluation.yaml:5: evaluators[0].rules[1].budget_ms: this key is required
configs/evaluation.yaml:6: evaluators[1].type: 'llm_juge' is not allowed; did you mean 'llm_judge'?
configs/evaluation.yaml:7: agregate: unknown key; did you mean 'aggregate'?
""".strip().splitlines()


def test_twenty_mistakes_in_four_files_are_named_at_once(tmp_path: Path, command: Command) -> None:
    files = {"agenteval.yaml": CONFIG, "agent.yaml": HOLODECK, "configs/evaluation.yaml": FLUXLOOP}
    for name, text in {**files, ".agentci/evals/a.toml": AGENTCI}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    ended = command("validate")

    assert (ended.status, ended.out) == (2, "")
    found = shown(ended.err)
    assert [said for said in SAID if not any(mistake.says(said) for mistake in found)] == []
    assert len(found) + sum(mistake.more for mistake in found) == len(SAID)
    assert ended.err.endswith("; nothing was run (exit status 2)\n")


def test_agents_that_no_case_uses_are_only_warned_about(tmp_path: Path, command: Command) -> None:
    assert command("init").status == 0
    (tmp_path / "graders.py").write_text("def grade(context): return 1.0\n", encoding="utf-8")
    agents = """
agents:
  default: {python: "agent:reply"}
  program: {command: [no-such-program, agent.py]}
  module: {python: "nowhere:reply"}
  function: {python: "agent:answer"}
  recorded: {replay: nothing.jsonl}
  remote: {http: "http://127.0.0.1:1/"}
tools:
  search: {python: "graders:search"}
"""
    (tmp_path / "agenteval.yaml").write_text(agents, encoding="utf-8")

    ended = command("validate")

    assert (ended.status, ended.err) == (0, "")
    warnings = [line for line in ended.out.splitlines() if line.startswith("warning: ")]
    assert [warning.split(":")[2] for warning in warnings] == ["4", "5", "6", "7", "10"]
    for warning, said in zip(
        warnings, ("no-such-program", "nowhere", "answer", "nothing.jsonl", "search"), strict=True
    ):
        assert said in warning


AGENT = "agents: {default: {command: [cat]}}\n"
TARGET = """
[eval]
description = "x"
type = "accuracy"
targets.agents = ["support"]
[[eval.cases]]
prompt = "x"
output.contains = "x"
"""
GRADED = """
evaluations: {metrics: [{type: code, grader: "nowhere:grade"}]}
test_cases: [{name: a, input: hi, ground_truth: hi}]
"""
JUDGED = """
evaluations: {model: {provider: openai, name: gpt-4o}, metrics: [{type: geval, name: kind, criteria: be kind}]}
test_cases: [{name: a, input: hi, ground_truth: hi}]
"""
EQUAL = """
evaluations: {metrics: [{type: standard, metric: equality}]}
test_cases: [{name: a, input: hi, ground_truth: hi}]
"""
TRACES = "evaluators: [{name: e, type: rule_based, enabled: true, rules: [{check: output_not_empty}]}]\n"
# Files by name, the arguments, and a part of what is said if the project cannot run.
PROJECTS: dict[str, tuple[Mapping[str, str], Sequence[str], str]] = {
    "fine": ({"agent.yaml": EQUAL, "agenteval.yaml": AGENT}, (), ""),
    "unknown-target": ({".agentci/evals/a.toml": TARGET}, (), "no agent is called 'support'"),
    "replaced-target": ({".agentci/evals/a.toml": TARGET}, ("--agent", "python:json:dumps"), ""),
    "no-agent": ({"agent.yaml": EQUAL}, (), "no agent to run"),
    "agent-of-another-file": (
        {"a/agent.yaml": EQUAL, "a/agenteval.yaml": AGENT, "b/agent.yaml": EQUAL},
        ("a", "b"),
        "b/",
    ),
    "second-configuration-is-wrong": (
        {"a/agent.yaml": EQUAL, "a/agenteval.yaml": AGENT, "b/agent.yaml": EQUAL, "b/agenteval.yaml": "gates: {}\n"},
        ("a", "b"),
        "b/agenteval.yaml:1: gates: unknown key",
    ),
    "configurations-contradict": (
        {
            "a/agent.yaml": EQUAL,
            "a/agenteval.yaml": f"{AGENT}concurrency: 1\n",
            "b/agent.yaml": EQUAL,
            "b/agenteval.yaml": f"{AGENT}concurrency: 2\n",
        },
        ("a", "b"),
        "b/agenteval.yaml:2 has another value",
    ),
    "missing-program": (
        {"agent.yaml": EQUAL, "agenteval.yaml": "agents: {default: [no-such-program]}\n"},
        (),
        "no-such",
    ),
    "missing-module": ({"agent.yaml": EQUAL}, ("--agent", "python:nowhere:reply"), "nowhere"),
    "missing-recording": ({"agent.yaml": EQUAL}, ("--agent", "replay:nothing.jsonl"), "nothing.jsonl"),
    "missing-grader": ({"agent.yaml": GRADED, "agenteval.yaml": AGENT}, (), "nowhere:grade"),
    "missing-metric": (
        {"agent.yaml": EQUAL, "agenteval.yaml": f"{AGENT}metrics: [{{python: 'nowhere:score'}}]\n"},
        (),
        "nowhere:score",
    ),
    "metric-without-a-key": ({"agent.yaml": JUDGED, "agenteval.yaml": AGENT}, (), "OPENAI_API_KEY"),
    "missing-template": (
        {"agent.yaml": EQUAL, "agenteval.yaml": f"{AGENT}templates: {{comment: x.j2}}\n"},
        (),
        "x.j2: no such file",
    ),
    "missing-baseline": ({"agent.yaml": EQUAL, "agenteval.yaml": AGENT}, ("--baseline", "b.json"), "no such"),
    "missing-suite": ({"agent.yaml": EQUAL, "agenteval.yaml": AGENT}, ("agent.yaml", "b.yaml"), "no such suite file"),
    "nothing-selected": ({"agent.yaml": EQUAL, "agenteval.yaml": AGENT}, ("-k", "zzz"), "no case matches"),
    "no-inputs": ({"configs/evaluation.yaml": TRACES}, (), "give recorded traces with --traces"),
    "no-traces": ({"configs/evaluation.yaml": TRACES}, ("--traces", "t.jsonl"), "t.jsonl"),
    "broken-trace": ({"configs/evaluation.yaml": TRACES, "t.jsonl": "{\n"}, ("--traces", "t.jsonl"), "t.jsonl:1"),
    "nothing-to-check": (
        {"agent.yaml": EQUAL.replace(", ground_truth: hi", ""), "agenteval.yaml": AGENT},
        (),
        "no case has a `ground_truth`",
    ),
    "only-a-configuration": ({"agenteval.yaml": AGENT}, (), "no suite given"),
}


@pytest.mark.parametrize("project", PROJECTS)
def test_validate_says_what_run_says(
    project: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    files, arguments, said = PROJECTS[project]
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    checked = command("validate", *arguments)
    assert not (tmp_path / "agenteval-report").exists()
    ended = command("run", "--quiet", *arguments)
    assert (checked.status == 2) == (ended.status == 2) == bool(said), (checked, ended)
    assert checked.status in {0, 2}
    assert not said or shown(checked.err)[0].says(said), checked.err
    # A run that starts also shows why the agent failed.
    assert checked.status == 0 or checked.err == ended.err
    assert not (checked.status == 2 and checked.out)


CORPUS = Path(__file__).parents[1]
BROKEN = sorted(
    path
    for folder in (
        "data/holodeck",
        "data/agentci/seed",
        "data/fluxloop",
        "fuzz/corpus/agentci",
        "fuzz/corpus/fluxloop",
        "fuzz/corpus/holodeck",
        "fuzz/corpus/config",
    )
    for path in (CORPUS / folder).glob("*.*")
)


@pytest.mark.parametrize("file", BROKEN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_validate_says_what_run_says_about_files_of_the_tests(file: Path, tmp_path: Path, command: Command) -> None:
    places = {"agentci": ".agentci/evals/a.toml", "seed": ".agentci/evals/a.toml", "config": "agenteval.yaml"}
    named = places.get(
        file.parent.name, "configs/evaluation.yaml" if file.parent.name == "fluxloop" else "agent.yaml"
    )
    (tmp_path / ".git").mkdir()
    (tmp_path / named).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / named).write_bytes(file.read_bytes())
    if named == "agenteval.yaml":
        (tmp_path / "agent.yaml").write_text(EQUAL, encoding="utf-8")
    for arguments in ((), ("-k", "no case has this name", "--agent", "replay:nothing.jsonl")):
        checked = command("validate", *arguments)
        ended = command("run", "--max-llm-calls", "0", "--out", f"report-{len(arguments)}", *arguments)
        assert (checked.status == 2) == (ended.status == 2)
        assert checked.status in {0, 2}
        assert not checked.status or (checked.out, checked.err) == (ended.out, ended.err)
