"""Mistakes that people make: each gets a message that says where it is and what to do, and exit status 2."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import ROOT, agenteval

from agenteval.core.version import DOCUMENTATION
from agenteval.results.store import read_results

AGENT = "agent: {command: [cat]}"
METRICS = "evaluations: {metrics: [{type: standard, metric: equality}]}"
CASES = "test_cases: [{name: a, input: hi, ground_truth: hi}]"
GOOD = f"{AGENT}\n{METRICS}\n{CASES}\n"


@dataclass(frozen=True)
class Mistake:
    """One way to get it wrong.

    Attributes:
        says: parts of what is said; the first one is how it begins.
        suite: the text of ``agent.yaml``.
        arguments: of the command.
        files: further files, by name.
        problems: how many are reported.
    """

    says: Sequence[str]
    suite: str = GOOD
    arguments: Sequence[str] = ("run",)
    files: Mapping[str, str] = field(default_factory=dict)
    problems: int = 1


def metric(text: str) -> str:
    """A suite whose only metric stands in line 4."""
    return f"{AGENT}\nevaluations:\n  metrics:\n    - {text}\n{CASES}\n"


def one_case(text: str) -> str:
    """A suite whose only case stands in line 4."""
    return f"{AGENT}\n{METRICS}\ntest_cases:\n  - {text}\n"


def agent(text: str) -> str:
    """A suite whose agent stands in line 3."""
    return f"{METRICS}\n{CASES}\nagent: {text}\n"


def config(text: str) -> Mistake:
    """What is said, and the text of ``agenteval.yaml``."""
    said, _, written = text.partition(" <- ")
    return Mistake([said], files={"agenteval.yaml": written})


SUITE = {
    # Keys
    "misspelt-key-of-the-file": Mistake(
        ["agent.yaml:3: test_case: unknown key; did you mean 'test_cases'?"],
        f"{AGENT}\n{METRICS}\ntest_case: []\n",
    ),
    "misspelt-key-of-evaluations": Mistake(
        [
            "agent.yaml:2: evaluations.metrics: this key",
            "3: evaluations.metric: unknown key; did you mean 'metrics'?",
        ],
        f"{AGENT}\nevaluations:\n  metric: []\n{CASES}\n",
        problems=2,
    ),
    "misspelt-key-of-a-metric": Mistake(
        ["agent.yaml:4: evaluations.metrics[0].treshold: unknown key; did you mean 'threshold'?"],
        metric("{type: standard, metric: f1_score, treshold: 0.5}"),
    ),
    "misspelt-key-of-a-case": Mistake(
        ["agent.yaml:4: test_cases[0].ground_thruth: unknown key; did you mean 'ground_truth'?"],
        one_case("{name: a, input: hi, ground_thruth: hi}"),
    ),
    "misspelt-key-of-a-turn": Mistake(
        [
            "agent.yaml:4: test_cases[0].turns[1].input: this key",
            "turns[1].inputs: unknown key; did you mean 'input'?",
        ],
        one_case("{name: a, turns: [{input: hi, ground_truth: hi}, {inputs: ho}]}"),
        problems=2,
    ),
    "misspelt-key-of-a-metric-of-a-case": Mistake(
        [
            "agent.yaml:4: test_cases[0].evaluations[0].metric: this key is required",
            "agent.yaml:4: test_cases[0].evaluations[0].metrik: unknown key; did you mean 'metric'?",
        ],
        one_case("{name: a, input: hi, ground_truth: hi, evaluations: [{metrik: equality}]}"),
        problems=2,
    ),
    "misspelt-key-of-an-expected-tool": Mistake(
        ["agent.yaml:4: test_cases[0].expected_tools[0].arguments: unknown key; ", "'args'"],
        one_case("{name: a, input: hi, expected_tools: [{name: search, arguments: {q: x}}]}"),
    ),
    "misspelt-key-of-the-agent": Mistake(
        ["agent.yaml:3: agent.comand: unknown key; did you mean 'command'?"], agent("{comand: [python, agent.py]}")
    ),
    "key-of-another-tool": Mistake(
        ["agent.yaml:4: test_cases[0].expected: unknown key", "ground_truth"],
        one_case("{name: a, input: hi, expected: hi}"),
    ),
    # Metrics
    "unknown-metric": Mistake(
        [
            "agent.yaml:4: evaluations.metrics[0].metric: 'f1_scores' is not allowed; did you mean 'f1_score'?",
            "error: metric 'f1_scores' is not allowed; did you mean 'f1_score'?\n",
        ],
        metric("{type: standard, metric: f1_scores}"),
    ),
    "unknown-metric-like-none": Mistake(
        ["agent.yaml:4: evaluations.metrics[0].metric: 'zzz' is not allowed", " = nearest: "],
        metric("{type: standard, metric: zzz}"),
    ),
    "unknown-type-of-metric": Mistake(
        [
            "agent.yaml:4: evaluations.metrics[0]",
            "'standart' is not allowed; did you mean 'standard'?",
            "geval, rag, code",
        ],
        metric("{type: standart, metric: f1_score}"),
    ),
    "metric-without-a-type": Mistake(
        ["agent.yaml:4: evaluations.metrics[0]: the key 'type' is required"], metric("{metric: f1_score}")
    ),
    "metrics-are-a-mapping": Mistake(
        ["agent.yaml:2: evaluations.metrics: must be a list, not a mapping"],
        f"{AGENT}\nevaluations: {{metrics: {{type: standard, metric: equality}}}}\n{CASES}\n",
    ),
    "metrics-are-names": Mistake(
        ["agent.yaml:2: evaluations.metrics[0]: must be a mapping (key: value), not 'equality'", "metrics[1]"],
        f"{AGENT}\nevaluations: {{metrics: [equality, numeric]}}\n{CASES}\n",
        problems=2,
    ),
    "evaluations-are-a-list": Mistake(
        ["agent.yaml:3: evaluations: must be a mapping (key: value), not a list"],
        f"{AGENT}\n{CASES}\nevaluations: [{{type: standard, metric: equality}}]\n",
    ),
    "no-metric": Mistake(
        ["agent.yaml:2: evaluations.metrics: "], f"{AGENT}\nevaluations: {{metrics: []}}\n{CASES}\n"
    ),
    "threshold-is-a-word": Mistake(
        ["agent.yaml:4: evaluations.metrics[0].threshold: must be a number"],
        metric("{type: standard, metric: f1_score, threshold: high}"),
    ),
    "threshold-with-a-comma": Mistake(
        ["agent.yaml:4: evaluations.metrics[0].threshold: must be a number"],
        metric("{type: standard, metric: f1_score, threshold: '0,8'}"),
    ),
    "option-of-another-metric": Mistake(
        ["agent.yaml:4: evaluations.metrics[0]: `variant` is for rouge, not bleu"],
        metric("{type: standard, metric: bleu, variant: rouge1}"),
    ),
    "path-into-the-response": Mistake(
        ["agent.yaml:4: evaluations.metrics[0].response_path: '$.total' is not a path like answer or "],
        metric("{type: standard, metric: numeric, response_path: $.total}"),
    ),
    "pattern-of-an-argument": Mistake(
        ["agent.yaml:4: test_cases[0].expected_tools[0].args: args.q: '(' is not a regular expression: "],
        one_case("{name: a, input: hi, expected_tools: [{name: search, args: {q: {regex: '('}}}]}"),
    ),
    # Cases
    "no-case": Mistake(["agent.yaml: the suite has no cases"], f"{AGENT}\n{METRICS}\ntest_cases: []\n"),
    "no-list-of-cases": Mistake(["agent.yaml: the suite has no cases"], f"{AGENT}\n{METRICS}\n"),
    "cases-are-a-mapping": Mistake(
        ["agent.yaml:3: test_cases: must be a list, not a mapping"],
        f"{AGENT}\n{METRICS}\ntest_cases: {{a: {{input: hi}}}}\n",
    ),
    "case-is-a-text": Mistake(
        ["agent.yaml:4: test_cases[0]: must be a mapping (key: value), not 'hi'"], one_case("hi")
    ),
    "case-without-input": Mistake(
        ["agent.yaml:4: test_cases[0]: `input` is required (or `turns` "], one_case("{name: a, ground_truth: hi}")
    ),
    "input-is-empty": Mistake(
        ["agent.yaml:4: test_cases[0].input: must not be empty"], one_case("{name: a, input: ''}")
    ),
    "input-beside-turns": Mistake(
        ["agent.yaml:4: test_cases[0]: with `turns`, these keys belong into the turns: input"],
        one_case("{name: a, input: hi, turns: [{input: hi}]}"),
    ),
    "ground-truth-is-no-number": Mistake(
        ["agent.yaml:4: test_cases[0].ground_truth: numeric compares numbers, and 'about 5' is not a number"],
        one_case("{name: a, input: hi, ground_truth: about 5, evaluations: [{metric: numeric}]}"),
    ),
    "case-metric-without-ground-truth": Mistake(
        ["agent.yaml:4: test_cases[0]: equality compares with `ground_truth`, and this case has none; add one"],
        one_case("{name: a, input: hi, evaluations: [{metric: equality}]}"),
    ),
    "turn-metric-without-ground-truth": Mistake(
        ["agent.yaml:4: test_cases[0]", "equality compares with `ground_truth`, and this turn has none; add one"],
        one_case("{name: a, turns: [{input: hi, evaluations: [{metric: equality}]}]}"),
    ),
    "file-of-cases-is-missing": Mistake(
        ["cases.yaml: test_cases_file: no such file"], f"{AGENT}\n{METRICS}\ntest_cases_file: cases.yaml\n"
    ),
    "mistake-in-the-file-of-cases": Mistake(
        ["cases.yaml:1: [0].inputs: unknown key; did you mean 'input'?"],
        f"{AGENT}\n{METRICS}\ntest_cases_file: cases.yaml\n",
        files={"cases.yaml": "- {inputs: hi}\n"},
    ),
    "names-that-differ-in-a-secret": Mistake(
        ["agent.yaml:5: several cases have the id 'agent.yaml::asks with ***'"],
        one_case(
            "{name: 'asks with ${SERVICE_KEY}', input: hi, ground_truth: hi}\n"
            "  - {name: 'asks with ***', input: hi, ground_truth: hi}"
        ),
        files={"agenteval.yaml": "allow_env: [SERVICE_KEY]\n"},
    ),
    "secret-in-the-id-of-a-metric": Mistake(
        ["agenteval.yaml:2: a secret is part of the id of a metric, which every report shows"],
        one_case("{name: a, input: hi, ground_truth: hi}"),
        files={
            "agenteval.yaml": "allow_env: [SERVICE_KEY]\nmetrics: [{type: equality, id: '${SERVICE_KEY}'}]\n",
        },
    ),
    # YAML
    "tab": Mistake(
        ["agent.yaml:2: not valid YAML: a tab cannot indent", "indent with blanks, not tabs"],
        f"agent:\n\tcommand: [cat]\n{CASES}\n",
    ),
    "text-with-a-colon": Mistake(
        ["agent.yaml:5: not valid YAML: mapping values are not allowed", "a text that contains ': ' needs quotes"],
        one_case("name: a\n    input: What is this: a question?\n    ground_truth: hi"),
    ),
    "quote-that-never-closes": Mistake(
        ["agent.yaml:5: not valid YAML: the quote that opens here is not closed"],
        one_case('name: a\n    input: "hi\n    ground_truth: hi'),
    ),
    "text-that-begins-with-an-at": Mistake(
        ["agent.yaml:5: not valid YAML: ", "begins with @, ` or % needs quotes"],
        one_case("name: a\n    input: @you\n    ground_truth: hi"),
    ),
    "wrong-indentation": Mistake(
        ["agent.yaml:5: not valid YAML: ", "indented too little"], one_case("name: a\n   input: hi")
    ),
    "merge-conflict": Mistake(["agent.yaml:5: not valid YAML: "], f"{GOOD}<<<<<<< HEAD\nname: x\n=======\n"),
    "empty-file": Mistake(["agent.yaml: the file is empty", "write keys with values, at least `test_cases`"], ""),
    "list": Mistake(["agent.yaml", "the file is a list instead of a mapping"], "- a\n- b\n"),
    "text": Mistake(["agent.yaml", "the file is one value instead of a mapping"], "just a text\n"),
    "unset-variable": Mistake(
        ["agent.yaml:4: environment variable NO_SUCH_VARIABLE is not set; set it, or write ${NO_SUCH_VARIABLE:-"],
        one_case("{name: a, input: '${NO_SUCH_VARIABLE}', ground_truth: hi}"),
    ),
    "unset-variables-and-a-misspelt-key": Mistake(
        ["agent.yaml:4: environment variable NO_SUCH_VARIABLE is not set", "NOR_THIS", "agent.yaml:6: nmae: "],
        one_case("{name: a, input: '${NO_SUCH_VARIABLE}', ground_truth: hi}")
        + "  - {name: b, input: '${NOR_THIS}', ground_truth: hi}\nnmae: x\n",
        problems=3,
    ),
}

AGENTS = {
    "no-agent": Mistake(
        ["agent.yaml: no agent to run: add one to agenteval.yaml, for instance", "agents:\n      default:\n"],
        f"{METRICS}\n{CASES}\n",
    ),
    "agent-is-empty": Mistake(["agent.yaml: no agent to run"], agent("")),
    "agent-without-a-kind": Mistake(
        ["agent.yaml:3: agent: exactly one of command, http, python, replay, holodeck, kind is needed, none given"],
        agent("{timeout: 5}"),
    ),
    "agent-of-two-kinds": Mistake(
        ["agent.yaml:3: agent: exactly one of command, http, python, replay, holodeck, kind is needed, 2 given"],
        agent("{command: [cat], http: 'http://localhost'}"),
    ),
    "unknown-name": Mistake(
        ["agent.yaml", "no agent is called 'suport'; did you mean 'support'?; defined: support"],
        agent("suport"),
        files={"agenteval.yaml": "agents: {support: [cat]}\n"},
    ),
    "command-as-the-agent": Mistake(
        [
            "agent.yaml",
            "no agent is called 'python agent.py'",
            "write a program as a list, such as [python, agent.py]",
        ],
        agent("python agent.py"),
    ),
    "command-as-one-text": Mistake(
        ["agent.yaml:3: agent.command: must be a list of arguments, for instance [python, agent.py]"],
        agent("{command: python agent.py}"),
    ),
    "command-is-empty": Mistake(["agent.yaml:3: agent.command: must name a program"], agent("{command: []}")),
    "command-does-not-exist": Mistake(
        ["agent.yaml:3: agent: the program 'no-such-program' does not exist or is not executable (looked on PATH)"],
        agent("{command: [no-such-program, x]}"),
    ),
    "file-of-a-module": Mistake(
        ["agent.yaml:3: agent.python: 'agent.py' is not of the form module:name, for instance agent:reply"],
        agent("{python: agent.py}"),
    ),
    "file-of-a-module-and-a-function": Mistake(
        ["agent.yaml:3: agent: there is no file bots.py in "],
        agent("{python: 'bots.py:reply'}"),
        files={"bot.py": "def reply(request): return 'x'"},
    ),
    "module-is-missing": Mistake(
        ["agent.yaml:3: agent: cannot import module 'nothing': ModuleNotFoundError: No module named 'nothing' (in "],
        agent("{python: 'nothing:reply'}"),
    ),
    "function-is-missing": Mistake(
        ["agent.yaml:3: agent: module 'bot' has no 'answer'"],
        agent("{python: 'bot:answer'}"),
        files={"bot.py": "def reply(request): return 'x'"},
    ),
    "interpreter-is-missing": Mistake(
        ["agent.yaml:3: agent: the program '", "venv/bin/python' does not exist or is not executable"],
        agent("{python: 'bot:reply', interpreter: venv/bin/python}"),
    ),
    "address-without-a-scheme": Mistake(
        ["agent.yaml:3: agent.http: 'localhost:8000/chat' is not an http:// or https:// address"],
        agent("{http: 'localhost:8000/chat'}"),
    ),
    "address-with-a-bad-port": Mistake(
        ["agent.yaml:3: agent: 'http://localhost:port/' is not a valid address"],
        agent("{http: 'http://localhost:port/'}"),
    ),
    "headers-of-a-command": Mistake(
        ["agent.yaml:3: agent: `headers` is for agents of type http, not command"],
        agent("{command: [cat], headers: {a: b}}"),
    ),
    "timeout-with-a-unit": Mistake(
        ["agent.yaml:3: agent.timeout: '30 seconds' is not a duration; write seconds as a number, or a unit"],
        agent("{command: [cat], timeout: 30 seconds}"),
    ),
    "recording-is-missing": Mistake(
        ["agent.yaml:3: agent: recording ", "answers.jsonl does not exist"], agent("{replay: answers.jsonl}")
    ),
    "recording-with-bad-lines": Mistake(
        ["{}/answers.jsonl:1: not a recorded reply: ", "answers.jsonl:3: not a recorded reply: needs a text `case`"],
        agent("{replay: answers.jsonl}"),
        files={"answers.jsonl": '{case: a}\n{"case": "a", "response": "x"}\n{"response": "x"}\n'},
        problems=2,
    ),
    "agent-option-unknown": Mistake(["agent.yaml", "no agent is called 'foo'"], arguments=("run", "--agent", "foo")),
    "agent-option-without-a-function": Mistake(
        ["--agent: python: 'agent' is not of the form module:name"], arguments=("run", "--agent", "python:agent")
    ),
    "agent-option-with-an-open-quote": Mistake(
        ["--agent: ", "cannot be split into arguments: No closing quotation"],
        arguments=("run", "--agent", "command:sh -c 'x"),
    ),
}

CONFIG = {
    "unknown-key": config("agenteval.yaml:1: agent: unknown key; did you mean 'agents'? <- agent: {}\n"),
    "unknown-key-of-the-gate": config(
        "agenteval.yaml:2: gate.fail_one: unknown key; did you mean 'fail_on'? <- gate:\n  fail_one: none\n"
    ),
    "unknown-word": config("agenteval.yaml:1: gate.fail_on: 'failure' is not allowed; <- gate: {fail_on: failure}\n"),
    "number-out-of-range": config(
        "agenteval.yaml:1: gate.tolerance: must be less than or equal to 1 <- gate: {tolerance: 5}\n"
    ),
    "too-often": config(
        "agenteval.yaml:1: iterations: must be less than or equal to 1000000 <- iterations: 99999999999999999999999\n"
    ),
    "too-many-at-once": config(
        "agenteval.yaml:1: concurrency: must be less than or equal to 1000000 <- concurrency: 1000001\n"
    ),
    "more-than-the-system-has": config(
        "agenteval.yaml:1: limits.cpu_s: must be less than or equal to 1000000000 <- limits: {cpu_s: 9999999999}\n"
    ),
    "zero": config("agenteval.yaml:1: iterations: must be greater than <- iterations: 0\n"),
    "agents-are-a-list": config("agenteval.yaml:1: agents: must be a mapping <- agents: [{command: [cat]}]\n"),
    "bad-agent": config(
        "agenteval.yaml:2: agents.default.comand: unknown key; <- agents:\n  default: {comand: [x]}\n"
    ),
    "list": config("agenteval.yaml: must be a mapping <- - a\n"),
    "broken": config("agenteval.yaml:2: not valid YAML: <- agents: {\n"),
    "unset-variable": config(
        "agenteval.yaml:1: environment variable NO_SUCH_VARIABLE is <- agents: {x: ['${NO_SUCH_VARIABLE}']}\n"
    ),
    "missing": Mistake(["nope.yaml: no such file"], arguments=("run", "--config", "nope.yaml")),
}

NEWER = json.dumps({"schema_version": 99})
FOREIGN = json.dumps({"results": []})
PARTLY = json.dumps({"schema_version": 1, "tool": {}})


def baseline(says: str, text: str | None = None) -> Mistake:
    return Mistake(
        [says],
        arguments=("run", "--baseline", "old.json"),
        files={} if text is None else {"old.json": text},
    )


OPTIONS = {
    "suite-is-missing": Mistake(["nope.yaml: no such suite file"], arguments=("run", "nope.yaml")),
    "suite-of-no-known-format": Mistake(
        ["suite.json: not a suite file of a known format"],
        arguments=("run", "suite.json"),
        files={"suite.json": "{}"},
    ),
    "program-as-suite": Mistake(
        ["bot.py: not a suite file of a known format"], arguments=("run", "bot.py"), files={"bot.py": "x"}
    ),
    "directory-without-a-suite": Mistake(
        ["empty: no suite in this directory (looked for agent.yaml"],
        arguments=("run", "empty"),
        files={"empty/notes.txt": ""},
    ),
    "filter-that-matches-nothing": Mistake(["no case matches --filter 'zzz'"], arguments=("run", "-k", "zzz")),
    "tag-that-matches-nothing": Mistake(["no case matches --tag zzz"], arguments=("run", "--tag", "zzz")),
    "case-that-does-not-exist": Mistake(
        ["--case: no case is named 'catt'; did you mean 'cat'?"],
        one_case("{name: cat, input: hi, ground_truth: hi}"),
        arguments=("run", "--case", "catt"),
    ),
    "failed-without-an-earlier-run": Mistake(
        ["agenteval-report: no such results file; --failed and --failed-in take the cases of an earlier run"],
        arguments=("run", "--failed"),
    ),
    "failed-of-a-resumed-run": Mistake(
        ["--resume: the run to finish may have replaced the reports that --failed reads"],
        arguments=("run", "--failed", "--resume"),
    ),
    "fail-on-unknown": Mistake(
        ["--fail-on: 'failure' is not allowed; allowed: failures, regressions, unproven, errors, or none alone"],
        arguments=("run", "--fail-on", "failure"),
    ),
    "fail-on-none-and-more": Mistake(
        ["--fail-on: 'none' is not allowed"], arguments=("run", "--fail-on", "none,errors")
    ),
    "fail-on-nothing": Mistake(["--fail-on: an empty list is not allowed"], arguments=("run", "--fail-on", ",")),
    "baseline-is-missing": baseline("old.json: --baseline: no such results file"),
    "baseline-is-a-directory-without-results": Mistake(
        ["empty: --baseline: no run in this folder (looked for results.json, "],
        arguments=("run", "--baseline", "empty"),
        files={"empty/notes.txt": ""},
    ),
    "baseline-is-no-json": baseline("old.json:1: --baseline: not valid JSON: ", "agent: x\n"),
    "baseline-is-cut-short": baseline("old.json:2: --baseline: not valid JSON: ", '{"schema_version": 1,\n'),
    "baseline-is-empty": baseline("old.json:1: --baseline: not valid JSON: ", ""),
    "baseline-is-foreign": baseline("old.json: --baseline: not the results of a run; understood are: ", FOREIGN),
    "baseline-is-a-list": baseline("old.json: --baseline: not the results of a run; understood are: ", "[]"),
    "baseline-is-newer": baseline("old.json: --baseline: written by a newer agenteval (schema_version 99, ", NEWER),
    "baseline-is-incomplete": baseline("old.json: tool.version: --baseline: not a results file of agenteval", PARTLY),
    "compare-without-results": Mistake(["a.json: no such results file"], arguments=("compare", "a.json", "b.json")),
    "report-without-results": Mistake(["a.json: no such results file"], arguments=("report", "a.json")),
    "validate-a-missing-suite": Mistake(["nope.yaml: no such suite file"], arguments=("validate", "nope.yaml")),
    "validate-a-broken-suite": Mistake(
        ["agent.yaml:4: nmae: unknown key; did you mean 'name'?"], f"{GOOD}nmae: x\n", arguments=("validate",)
    ),
    "validate-a-broken-configuration": Mistake(
        ["agenteval.yaml:1: gates: unknown key"], arguments=("validate",), files={"agenteval.yaml": "gates: {}\n"}
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a new user tries it."""
    # The message would name the home of a repository above.
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("SERVICE_KEY", "sk-0123456789")
    return tmp_path


# Options that `validate` does not have.
OF_RUN = {"--out", "--shard", "--fail-on", "--failed", "--resume"}


def check(mistake: Mistake, folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(mistake.suite, encoding="utf-8")
    for name, text in mistake.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    ended = command(*mistake.arguments)
    first, *others = said = shown(ended.err)
    begin, *further = (text.replace("{}", str(folder)) for text in mistake.says)
    assert first.says(begin), ended.err
    assert [part for part in further if not (part in ended.err or any(item.says(part) for item in said))] == []
    assert ended.status == 2
    assert len(said) + sum(item.more for item in said) == mistake.problems, ended.err
    undone = {"compare": "compared", "report": "written"}.get(mistake.arguments[0], "run")
    last = f"nothing was {undone} (exit status 2)"
    assert ended.err.splitlines()[-1].endswith(f"; {last}" if others or first.more else last)
    assert "Traceback" not in ended.err
    # A run that could not start has no results; the reports of an earlier one are left alone.
    assert not (folder / "agenteval-report" / "results.json").exists()
    assert not ended.out
    if mistake.arguments[0] == "run" and not OF_RUN.intersection(mistake.arguments):
        again = command("validate", *mistake.arguments[1:])
        assert (again.status, again.err, again.out) == (ended.status, ended.err, "")


@pytest.mark.parametrize("mistake", SUITE.values(), ids=SUITE)
def test_in_the_suite(mistake: Mistake, folder: Path, command: Command) -> None:
    check(mistake, folder, command)


@pytest.mark.parametrize("mistake", AGENTS.values(), ids=AGENTS)
def test_in_the_agent(mistake: Mistake, folder: Path, command: Command) -> None:
    check(mistake, folder, command)


@pytest.mark.parametrize("mistake", CONFIG.values(), ids=CONFIG)
def test_in_the_configuration(mistake: Mistake, folder: Path, command: Command) -> None:
    check(mistake, folder, command)


@pytest.mark.parametrize("mistake", OPTIONS.values(), ids=OPTIONS)
def test_in_the_options(mistake: Mistake, folder: Path, command: Command) -> None:
    check(mistake, folder, command)


DASHES = (
    *(("run", name) for name in ("baseline", "filter", "iterations", "traces", "agent", "concurrency", "tag")),
    ("probe", "input"),
    ("merge", "a", "-o", "b", "baseline"),
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no command is given"),
        (["rnu"], "no command 'rnu'; did you mean 'run'?"),
        (["vaildate"], "no command 'vaildate'; did you mean 'validate'?"),
        (["run", "--iterations", "0"], "--iterations: '0' is not a whole number above 0"),
        (["run", "--iterations", "many"], "--iterations: 'many' is not a whole number above 0"),
        (["run", "--concurrency", "-1"], "--concurrency: '-1' is not a whole number above 0"),
        (["run", "--iterations", "1000001"], "--iterations: '1000001' is more than 1,000,000"),
        (["run", "--runs", "9" * 30], f"--runs: '{'9' * 30}' is more than 1,000,000"),
        (["run", "--concurrency", "9" * 30], f"--concurrency: '{'9' * 30}' is more than 1,000,000"),
        (["run", "--baseline"], "--baseline: expected one argument"),
        (["run", "--baseline", ""], "--baseline: its value is empty"),
        (["run", "--baseline="], "--baseline: its value is empty"),
        (["run", "--quiet", "--agent", ""], "--agent: its value is empty"),
        (["run", ""], "an argument is empty"),
        (["merge", "a", "-o", "b", "--baseline", ""], "--baseline: its value is empty"),
        (["merge", "a", "", "-o", "b"], "an argument is empty"),
        (["compare", "a", ""], "an argument is empty"),
        (["merge", "a", "-o=--"], "-o: '--' is not a value"),
        (["merge", "a", "-o--"], "-o: '--' is not a value"),
        *(([*command, f"--{name}=--"], f"--{name}: '--' is not a value") for *command, name in DASHES),
        (["run", "--bogus"], "unknown option '--bogus'"),
        (["run", "--iteration", "3"], "unknown option '--iteration'; did you mean '--iterations'?"),
        (["run", "agent.yaml", "--quite"], "unknown option '--quite'; did you mean '--quiet'?"),
        (["run", "--contrl=old"], "unknown option '--contrl'; did you mean '--control'?"),
        (["compare", "a", "b", "c"], "unexpected argument 'c'"),
        (["schema", "result"], "NAME: 'result' is not allowed; did you mean 'results'?"),
    ],
)
def test_in_the_command_line(arguments: Sequence[str], said: str, folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    ended = command(*arguments)
    assert (ended.status, ended.out) == (2, "")
    (mistake,) = shown(ended.err)
    assert mistake.title == said
    # The usage would hide the message.
    assert "usage: " not in ended.err
    assert "--help`" in ended.err


def test_no_suite_at_all(folder: Path, command: Command) -> None:
    ended = command("run")
    assert (ended.status, ended.out) == (2, "")
    places = "agent.yaml, .agentci/evals/*.toml, configs/evaluation.yaml"
    assert f"no suite given, and none in this directory (looked for {places})" in ended.err
    assert "= help: write one: agenteval init\n" in ended.err


def test_nothing_to_validate(folder: Path, command: Command) -> None:
    ended = command("validate")
    assert (ended.status, ended.out) == (2, "")
    assert "no suite given, and none in this directory" in ended.err


@pytest.mark.parametrize(
    ("suite", "what"),
    [
        (
            f"{AGENT}\n{METRICS}\ntest_cases: [{{name: a, input: hi}}]\n",
            "no case has a `ground_truth` for the metrics",
        ),
        (f"{AGENT}\n{CASES}\n", "no case has an enabled metric"),
        (
            f"{AGENT}\nevaluations: {{metrics: [{{type: standard, metric: bleu, enabled: false}}]}}\n{CASES}\n",
            "no case has an enabled metric",
        ),
    ],
    ids=["no-ground-truth", "no-metric", "metric-disabled"],
)
@pytest.mark.parametrize("fail_on", ["failures", "none"])
def test_a_suite_in_which_nothing_can_be_checked(
    suite: str, what: str, fail_on: str, folder: Path, command: Command
) -> None:
    (folder / "agent.yaml").write_text(suite, encoding="utf-8")
    ended = command("run", "--fail-on", fail_on)
    assert ended.status == 2
    (mistake,) = shown(ended.err)
    assert mistake.title.startswith(what)
    assert mistake.place == f"agent.yaml:{2 if 'evaluations' not in suite else 3}"
    # Nothing was run, so there is no report.
    assert (ended.out, (folder / "agenteval-report" / "results.json").exists()) == ("", False)
    checked = command("validate")
    assert (checked.status, checked.out, checked.err) == (2, "", ended.err)


def test_reports_of_an_earlier_run_are_not_taken_for_those_of_this_one(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    note = "agenteval: the reports in agenteval-report/ are those of an earlier run\n"
    assert note not in command("run", "-k", "zzz").err
    command("run")
    report = (folder / "agenteval-report" / "results.json").read_bytes()
    for option in (("-k", "zzz"), ("--config", "missing.yaml"), ("--shard", "0/0")):
        ended = command("run", *option)
        assert ended.status == 2
        assert ended.err.startswith(note)
    assert (folder / "agenteval-report" / "results.json").read_bytes() == report


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_one_of_several_suites_in_which_nothing_can_be_checked(folder: Path, command: Command, verb: str) -> None:
    for name, suite in {"fine": GOOD, "off": f"{AGENT}\n{CASES}\n"}.items():
        (folder / name).mkdir()
        (folder / name / "agent.yaml").write_text(suite, encoding="utf-8")
    ended = command(verb, "fine", "off")
    assert ended.status == 2
    (mistake,) = shown(ended.err)
    assert (mistake.place, mistake.title) == ("off/agent.yaml:2", "no case has an enabled metric")


def test_every_problem_of_every_file_in_one_run(folder: Path, command: Command) -> None:
    for name in ("one", "two", "three", "fine"):
        (folder / name).mkdir()
    (folder / "one" / "agent.yaml").write_text(f"{GOOD}nmae: x\n", encoding="utf-8")
    (folder / "two" / "agent.yaml").write_text(one_case("{name: a, inptu: hi}"), encoding="utf-8")
    (folder / "three" / "agent.yaml").write_text("a: [\n", encoding="utf-8")
    (folder / "fine" / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "agenteval.yaml").write_text("gates: {}\n", encoding="utf-8")
    suites = ["one/agent.yaml", "two", "three/agent.yaml", "fine", "gone/agent.yaml"]
    ended = command("run", *suites, "--baseline", "old.json")
    assert (ended.status, ended.out) == (2, "")
    for begin in (
        "one/agent.yaml:4: nmae: ",
        "two/agent.yaml:4: test_cases[0].inptu: ",
        "three/agent.yaml:",
        "gone/agent.yaml: no such suite file",
        "agenteval.yaml:1: gates: ",
        "old.json: --baseline: ",
    ):
        assert any(mistake.says(begin) for mistake in shown(ended.err)), begin


def test_every_agent_that_cannot_start_in_one_run(folder: Path, command: Command) -> None:
    for name, written in (("one", "{command: [no-such-program]}"), ("two", "{replay: gone.jsonl}")):
        (folder / name).mkdir()
        (folder / name / "agent.yaml").write_text(agent(written), encoding="utf-8")
    ended = command("run", "one", "two")
    assert (ended.status, ended.out) == (2, "")
    one, two = shown(ended.err)
    assert one.says("one/agent.yaml:3: agent: the program 'no-such-program' does not exist")
    assert two.says("two/agent.yaml:3: agent: recording ")
    assert command("validate", "one", "two") == ended


@pytest.mark.parametrize("out", ["taken", "taken/deeper"])
def test_reports_that_cannot_be_written(out: str, folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "taken").write_text("a file", encoding="utf-8")
    ended = command("run", "--out", out)
    assert (ended.status, ended.out) == (2, "")
    (mistake,) = shown(ended.err)
    assert mistake.says("taken is a file, not a directory; name another directory for the reports")
    assert ended.err.endswith("nothing was run (exit status 2)\n")


def test_a_directory_for_reports_that_is_none(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "dangling").symlink_to("gone")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    for out, said in {
        "dangling": "dangling is a link, not a directory",
        "loop/deeper": "loop is a link, not a directory",
        "pipe": "pipe is a named pipe, not a directory",
        "/dev/null/deeper": "/dev/null is a device, not a directory",
    }.items():
        ended = command("run", "--out", out)
        assert (ended.status, ended.out) == (2, ""), out
        assert said in ended.err
    for words in (["run", "--out"], ["report", "x", "--out"], ["report", "x", "-o"], ["merge", "x", "-o"]):
        ended = command(*words, "")
        assert ended.status == 2
        assert "needs a file or a folder" in ended.err
    assert sorted(path.name for path in folder.iterdir()) == [".git", "agent.yaml", "dangling", "loop", "pipe"]


def test_paths_that_are_not_utf_8(folder: Path, command: Command) -> None:
    """Linux allows any bytes; results, which are UTF-8, contain them escaped."""
    name = os.fsdecode(b"d\xff")
    (folder / name).mkdir()
    (folder / name / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for words in (
        ["validate", name],
        ["run", name, "--out", name],
        ["run", name, "--out", name, "--resume"],
        ["run", name, "--baseline", name, "--out", "again"],
        ["run", name, "--agent", f"replay:{name}", "--out", "replayed"],
        ["compare", name, name],
        ["report", name],
        ["merge", name, "-o", "merged"],
        ["probe", name],
    ):
        ended = command(*words)
        assert ended.status == 0, (words, ended.text)
        assert "internal error" not in ended.text
    for out in (name, "again", "merged"):
        (suite,) = read_results(folder / out).suites
        assert suite.path == r"d\udcff/agent.yaml"
        assert [case.id for case in suite.cases] == [f"{suite.path}::a"]
    ended = command("list", "--json")
    assert (ended.status, ended.out) == (2, "")
    assert "its path is not UTF-8, so no workflow can name it" in ended.err


def test_inputs_that_the_run_would_replace(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "out" / "evaluation").mkdir(parents=True)
    traces = {"trace_id": "a", "iteration": 0, "persona": "x", "output": "hi", "success": True}
    names = ("journal.jsonl", "confirmation-1.jsonl", "evaluation/per_trace.jsonl", "comment.md", "summary.md")
    for name in names:
        (folder / "out" / name).write_text(f"{json.dumps(traces)}\n", encoding="utf-8")
    (folder / "link").symlink_to("out/summary.md")
    before = {name: (folder / "out" / name).read_bytes() for name in names}
    for words, what in (
        (["--agent", "replay:out/journal.jsonl"], "recording"),
        (["--agent", "replay:out/confirmation-1.jsonl"], "recording"),
        (["--agent", "replay:out/evaluation/per_trace.jsonl"], "recording"),
        (["--comment-template", "out/comment.md"], "template"),
        (["--summary-template", "link"], "template"),
    ):
        ended = command("run", "agent.yaml", "--out", "out", *words)
        assert ended.status == 2, ended.text
        assert f"a report would take the place of this {what}" in ended.err
        assert {name: (folder / "out" / name).read_bytes() for name in names} == before
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    assert command("run", "--out", "run").status == 0
    for words in (["report", "run", "--out", "out"], ["merge", "run", "-o", "out"]):
        (folder / "agenteval.yaml").write_text("templates: {summary: out/summary.md}", encoding="utf-8")
        ended = command(*words, "--config", "agenteval.yaml")
        assert ended.status == 2, ended.text
        assert "a report would take the place of this template" in ended.err
        assert {name: (folder / "out" / name).read_bytes() for name in names} == before


def test_no_file_of_a_suite_is_replaced(folder: Path, command: Command) -> None:
    (folder / "out").mkdir()
    suite = yaml.safe_load(GOOD)
    files: dict[str, tuple[str, dict[str, Any]]] = {
        "results.json": (
            json.dumps(suite["test_cases"]),
            {"test_cases": None, "test_cases_file": "out/results.json"},
        ),
        "badge.json": (
            "{}",
            {"test_cases": [{**suite["test_cases"][0], "files": [{"path": "out/badge.json", "type": "text"}]}]},
        ),
        "comment.md": ("limits: {}", {}),
    }
    for name, (text, keys) in files.items():
        (folder / "out" / name).write_text(text, encoding="utf-8")
        changed = {key: value for key, value in {**suite, **keys}.items() if value is not None}
        (folder / "agent.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
        words = () if keys else ("--config", "out/comment.md")
        ended = command("run", "agent.yaml", "--out", "out", *words)
        assert ended.status == 2, ended.text
        assert "a report would take the place of this" in ended.err
        assert f" --> out/{name}\n" in ended.err
        assert (folder / "out" / name).read_text(encoding="utf-8") == text
        (folder / "out" / name).unlink()


def test_no_results_or_configuration_is_replaced_by_a_report(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for name in ("other.yaml", "other.json", "agenteval.yaml"):
        (folder / name).write_text("limits: {}", encoding="utf-8")
    for out in ("run", "again"):
        assert command("run", "--out", out).status == 0
    (folder / "copy").mkdir()
    shutil.copy("run/results.json", "copy/trend.json")
    shutil.copy("again/results.json", "copy/other.json")
    shutil.copy("run/results.json", "copy/results.json")
    (folder / "copy" / "template").write_text('{% include "comment.md" %}', encoding="utf-8")
    (folder / "copy" / "comment.md").write_text("Hello", encoding="utf-8")
    (folder / "link.md").symlink_to("run/results.json")
    (folder / "run-link").symlink_to("run")
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    (folder / "traces").rename("other")
    (folder / "traces").mkdir()
    shutil.copytree("other", "traces/evaluation")
    shutil.copytree("other", "experiment")
    # Their evaluation is beside them, and is replaced.
    for _ in range(2):
        ended = command("run", "configs/evaluation.yaml", "--traces", "experiment", "--out", "experiment")
        assert ended.status == 1, ended.text
    with Path("configs/evaluation.yaml").open("a", encoding="utf-8") as file:
        file.write("  template_path: ../page/report.html\n")
    (folder / "page").mkdir()
    (folder / "page" / "report.html").write_text("<p>[[TITLE]]</p>", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words in (
        ["report", "run", "--format", "markdown", "-o", "run/results.json"],
        ["report", "run", "--format", "json", "-o", "run/results.json"],
        ["report", "run", "-o", "link.md"],
        ["report", "run", "--config", "other.yaml", "--format", "html", "-o", "other.yaml"],
        ["report", "run", "--format", "markdown", "-o", "agenteval.yaml"],
        ["report", "run", "--format", "json", "-o", "agent.yaml"],
        ["report", "run", "--history", "copy", "--format", "html", "-o", "copy/results.json"],
        ["report", "run", "--summary-template", "copy/template", "--out", "copy"],
        ["run", "agent.yaml", "--summary-template", "copy/template", "--out", "copy"],
        ["run", "agent.yaml", "--agent", "replay:run", "--out", "run"],
        ["run", "agent.yaml", "--agent", "replay:run-link", "--out", "run"],
        ["run", "configs/evaluation.yaml", "--traces", "traces", "--out", "traces"],
        ["run", "configs/evaluation.yaml", "--traces", "other", "--out", "page"],
        ["report", "copy/trend.json"],
        ["merge", "copy/trend.json", "copy/other.json", "-o", "copy/all.json"],
        ["merge", "run", "again", "-o", "run"],
        ["merge", "run", "again", "--config", "other.json", "-o", "other.json"],
    ):
        ended = command(*words)
        assert ended.status == 2, (words, ended.text)
        assert "a report would take the place of this" in ended.err, words
        assert {path: path.read_bytes() for path in before} == before, words


def test_reports_of_two_runs_in_one_directory(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for out in ("one", "two"):
        assert command("run", "--out", out).status == 0
    ended = command("report", "one", "--out", "two")
    assert ended.status == 2
    assert "this directory contains the results of another run" in ended.err
    (folder / "two" / "one.json").write_bytes((folder / "one" / "results.json").read_bytes())
    assert command("report", "two/one.json").status == 0
    assert command("report", "two").status == 0
    assert command("report", "one", "--out", "three").status == 0
    assert command("report", "one", "--out", "three").status == 0
    assert command("merge", "one", "-o", "two").status == 0
    assert not (folder / "two" / "journal.jsonl").exists()
    before = {path: path.read_bytes() for path in (folder / "one").iterdir()}
    ended = command("merge", "two", "-o", "one/merged.json")
    assert ended.status == 2
    assert "this directory contains the results of another run" in ended.err
    assert {path: path.read_bytes() for path in (folder / "one").iterdir()} == before
    for _ in range(2):
        assert command("merge", "two", "-o", "merged/all.json").status == 0


@pytest.mark.parametrize("place", ["folder", "link.html", "/dev/null", "agent.yaml/report.html"])
def test_a_report_is_written_to_a_file(folder: Path, command: Command, place: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    assert command("run").status == 0
    (folder / "folder").mkdir()
    (folder / "link.html").symlink_to("agenteval-report/report.html")
    ended = command("report", "agenteval-report", "--format", "html", "-o", place)
    assert ended.status == 2, ended.text
    assert re.search(r"not a regular file\n --> .*\n  = help: name another file with -o|not a directory", ended.err)


@pytest.mark.parametrize("agent", ["command: [sh, comment.md]", "command: [sh, ./traces/../comment.md]"])
def test_no_program_of_an_agent_is_replaced_by_a_report(folder: Path, command: Command, agent: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("command: [cat]", agent), encoding="utf-8")
    (folder / "traces").mkdir()
    (folder / "comment.md").write_text("echo hi", encoding="utf-8")
    ended = command("run", "agent.yaml", "--out", ".")
    assert ended.status == 2, ended.text
    assert "a report would take the place of this program" in ended.err
    assert (folder / "comment.md").read_text(encoding="utf-8") == "echo hi"
    assert command("run", "agent.yaml", "--out", "out").status == 0


@pytest.mark.parametrize("word", [r'"a\0b"', "x" * 5000, "..", '""'])
def test_a_word_of_a_command_need_not_be_a_path(folder: Path, command: Command, word: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", f"[echo, {word}]"), encoding="utf-8")
    ended = command("run", "agent.yaml")
    assert "internal error" not in ended.text
    assert (ended.status, "could not be run" in ended.out) in [(1, False), (3, True)]


def test_judgements_are_appended_to_no_file_that_is_read(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    suite = (folder / "configs" / "evaluation.yaml").read_text(encoding="utf-8")
    judge = "  - {name: j, type: llm_judge, model: m, prompt_template: 'Rate {output}', parser: first_number_1_10}\n"
    suite = suite.replace("evaluators:\n", f"evaluators:\n{judge}") + "limits: {cache: %s}\n"
    (folder / "agenteval.yaml").write_text("gate: {max_error_rate: 0.5}\n", encoding="utf-8")
    caches = ("../traces/per_trace.jsonl", "evaluation.yaml", "../agenteval.yaml", "../out/journal.jsonl")
    for cache in caches:
        (folder / "configs" / "evaluation.yaml").write_text(suite % cache, encoding="utf-8")
        ended = command("run", "configs/evaluation.yaml", "--traces", "traces", "--out", "out")
        assert ended.status == 2, (cache, ended.text)
        assert "judgements would be appended to this" in ended.err, ended.text


def test_loops_of_links(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "loop").symlink_to("loop")
    for words in (
        ["merge", "loop", "-o", "merged"],
        ["compare", "loop", "loop"],
        ["explain-gate", "loop"],
        ["report", "loop"],
        ["open", "loop"],
        ["accept", "--from", "loop", "--reason", "x"],
        ["run", "loop"],
        ["run", "loop/agent.yaml"],
        ["run", "--config", "loop"],
        ["run", "--baseline", "loop"],
        ["run", "--failed-in", "loop"],
        ["run", "--agent", "replay:loop"],
        ["validate", "loop"],
        ["list", "loop"],
    ):
        ended = command(*words)
        assert ended.status == 2, words
        assert "internal error" not in ended.err, words
        assert "loop" in ended.err, words


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("accept", "--from", "gone", "--reason", "x"), "nothing was accepted (exit status 2)"),
        (("compare", "gone", "gone"), "nothing was compared (exit status 2)"),
        (("merge", "gone"), "nothing was merged (exit status 2)"),
        (("open", "gone"), ""),
        (("explain", "f1_scor"), ""),
        (("explain-gate", "gone"), ""),
        (("rnu",), "nothing was run (exit status 2)"),
    ],
)
def test_the_end_says_what_the_command_did_not_do(
    words: tuple[str, ...], last: str, folder: Path, command: Command
) -> None:
    ended = command(*words)
    assert ended.status == 2
    assert ("exit status" in ended.err) == bool(last)
    assert ended.err.splitlines()[-1] == last


def test_hostile_text_in_a_message_commands_nobody(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(
        'agent: {command: [cat]}\n"::error::x\\n::add-mask::y\\e[31m ##[group]": 1\n', encoding="utf-8"
    )
    ended = command("run")
    assert ended.status == 2
    assert "\x1b" not in ended.err
    assert not [line for line in ended.err.splitlines() if line.startswith("::") or "##[" in line]


def test_a_message_never_shows_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    # A key file is longer than any path may be.
    monkeypatch.setenv("PRIVATE_KEY", "line of a key\n" * 400)
    (folder / "agent.yaml").write_text(one_case("{name: a, input: hi, ground_truth: hi}\nsk-0123456789: 1"), "utf-8")
    ended = command("run")
    assert ended.status == 2
    assert "sk-0123456789" not in ended.err
    assert "***" in ended.err


def test_the_installed_command_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(f"{GOOD}nmae: x\n", encoding="utf-8")
    ended = agenteval("run", cwd=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        "error: unknown key 'nmae'; did you mean 'name'?",
        " --> agent.yaml:4",
        "  |",
        "4 | nmae: x",
        "  | ^^^^ nmae",
        f"  = see: {DOCUMENTATION}/troubleshooting.md#unknown-key",
        "",
        "nothing was run (exit status 2)",
    ]


def test_carets_mark_the_wrong_value_in_definitions_of_several_lines(folder: Path, command: Command) -> None:
    (folder / "agenteval.yaml").write_text(
        "agents:\n  default:\n    timeout: 5\n    command:\n    - no-such-program\n"
    )
    (folder / "agent.yaml").write_text(f"{METRICS}\n{CASES}\n", encoding="utf-8")
    text = command("run").err
    assert " --> agenteval.yaml:5\n" in text
    assert "  |     ^^^^^^^^^^^^^^^\n" in text
