"""`agenteval validate` names everything that is wrong, in all files, in one pass."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.conftest import Command

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
  - {name: two, input: hi again, ground_truth: "${NOT_SET_HERE}"}
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
agenteval.yaml:7: llm.timeout: must be a valid number
agent.yaml:2: evaluatons: unknown key; did you mean 'evaluations'?
agent.yaml:5: evaluations.metrics[0].metric: 'blue' is not allowed; did you mean 'bleu'?
agent.yaml:6: evaluations.metrics[1].criteria: this key is required
agent.yaml:8: test_cases[0].inptu: unknown key; did you mean 'input'?
agent.yaml:10: environment variable NOT_SET_HERE is not set
agent.yaml:10: test_cases: the name 'two' is given twice (first in line 9)
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
    lines = ended.err.splitlines()
    assert [said for said in SAID if not any(line.startswith(f"agenteval: {said}") for line in lines)] == []
    assert len(lines) == len(SAID) + 1
    assert lines[-1] == f"agenteval: {len(SAID)} problems; nothing was run"


def test_agents_that_cannot_be_started_here_are_named(tmp_path: Path, command: Command) -> None:
    assert command("init").status == 0
    (tmp_path / "graders.py").write_text("def grade(context): return 1.0\n", encoding="utf-8")
    agents = """
agents:
  default: {command: [no-such-program, agent.py]}
  module: {python: "nowhere:reply"}
  function: {python: "agent:answer"}
  recorded: {replay: nothing.jsonl}
  remote: {http: "http://127.0.0.1:1/"}
  fine: {python: "agent:reply"}
tools:
  search: {python: "graders:search"}
"""
    (tmp_path / "agenteval.yaml").write_text(agents, encoding="utf-8")

    ended = command("validate")

    assert (ended.status, ended.err) == (0, "")
    warnings = [line for line in ended.out.splitlines() if line.startswith("  warning: ")]
    assert [warning.split(":")[2] for warning in warnings] == ["3", "4", "5", "6", "10"]
    for warning, said in zip(
        warnings, ("no-such-program", "nowhere", "answer", "nothing.jsonl", "search"), strict=True
    ):
        assert said in warning
