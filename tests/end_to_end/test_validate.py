"""`agenteval validate` names everything that is wrong, in all files, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.mistakes import shown

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
