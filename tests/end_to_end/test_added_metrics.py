"""``metrics:`` of agenteval.yaml adds metrics to suites of every format, by the installed command."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.support import ROOT, Ended, agenteval, environment

SCORERS = """
import asyncio, time
from dataclasses import dataclass
from agenteval.grader import Observation, Outcome

def brevity(answer, words=40):
    assert isinstance(answer, Observation)
    return min(1.0, words / max(1, len(answer.response.split())))

async def later(answer):
    await asyncio.sleep(0)
    return True

@dataclass(frozen=True)
class Limit:
    letters: int = 10
    requires = frozenset({"ground_truth"})
    def measure(self, answer):
        return Outcome(0.25, passed=len(answer.response) > self.letters, reason="a reason", details={"n": 1})

def nothing(answer):
    return None

def broken(answer):
    raise ValueError("no such luck")

def two(answer):
    return 2.0

def hangs(answer):
    time.sleep(600)

def refuses(answer):
    return False
"""
AGENT = "def reply(text):\n    return 'a b c'\n"
SUITES = {
    "agent.yaml": """
        name: s
        agent: {python: "agent:reply"}
        evaluations:
          metrics: [{type: standard, metric: f1_score, threshold: 0.5}]
        test_cases:
          - {name: one, input: hi, ground_truth: a b c}
          - {name: two, input: ho, ground_truth: a b c}
    """,
    ".agentci/evals/answers.toml": """
        [eval]
        description = "d"
        type = "accuracy"
        targets.agents = ["*"]
        [[eval.cases]]
        prompt = "hi"
        output.contains = "b"
    """,
    "configs/evaluation.yaml": """
        evaluators:
          - {name: basics, type: rule_based, enabled: true, rules: [{check: output_not_empty}]}
        aggregate: {method: weighted_sum, threshold: 0.7}
    """,
}
INPUTS = "personas: [{name: p, description: d}]\nbase_inputs: [{input: hi}, {input: ho}]\n"
FORMATS = list(SUITES)


def project(folder: Path, suite: str, metrics: str) -> Path:
    write(folder / suite, SUITES[suite])
    write(folder / "agent.py", AGENT)
    write(folder / "evals/scorers.py", SCORERS)
    write(folder / "agenteval.yaml", "agents: {default: {python: 'agent:reply'}}\n" + textwrap.dedent(metrics))
    if suite.startswith("configs"):
        write(folder / "configs/input.yaml", INPUTS)
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def run(folder: Path, suite: str, *arguments: str | Path, out: str = "out", **variables: str) -> Ended:
    return agenteval("run", suite, "--out", folder / out, *arguments, cwd=folder, env=environment(**variables))


def written(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return value


def scores_of(folder: Path, out: str = "out") -> dict[str, dict[str, Any]]:
    """The scores of the first case, by metric id."""
    value = written(folder / out)
    turn = value["suites"][0]["cases"][0]["iterations"][0]["turns"][0]
    return {score["id"]: score for score in turn["scores"]}


def plugin(folder: Path, value: str = "acme_evals:Toxicity") -> Path:
    """A package as pip installs it."""
    write(folder / "acme_evals.py", "class Toxicity:\n    def measure(self, answer):\n        return 0.75\n")
    write(folder / "acme_evals-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.2\n")
    write(folder / "acme_evals-1.2.dist-info/entry_points.txt", f"[agenteval.metrics]\nacme.toxicity = {value}\n")
    return folder


def test_a_packaged_metric_runs_in_the_worker(tmp_path: Path) -> None:
    metrics = "metrics: [{type: acme.toxicity, threshold: 0.5}]\n"
    folder = project(tmp_path, "agent.yaml", metrics)
    assert run(folder, "agent.yaml", PYTHONPATH=str(plugin(tmp_path / "site"))).status == 0
    assert (scores_of(folder)["acme.toxicity"]["score"], scores_of(folder)["acme.toxicity"]["passed"]) == (0.75, True)
    assert written(folder / "out")["tool"]["plugins"] == [{"name": "acme-evals", "version": "1.2"}]


@pytest.mark.parametrize("suite", FORMATS)
def test_an_added_metric_keeps_the_baseline_of_the_others(tmp_path: Path, suite: str) -> None:
    folder = project(tmp_path, suite, "")
    assert run(folder, suite, "--iterations", "2", out="before").status == 0
    plain = run(folder, suite, "--iterations", "2", "--baseline", "before", out="plain")
    project(folder, suite, "metrics: [{python: 'evals/scorers.py:brevity', threshold: 0.5}]\n")
    added = run(folder, suite, "--iterations", "2", "--baseline", "before", out="added")
    assert (plain.status, added.status) == (0, 0), added.text
    before, after = (written(folder / name)["comparison"] for name in ("plain", "added"))
    assert before["metrics"] == after["metrics"]
    assert after["metrics"]
    assert (before["state"], before["headline"]) == (after["state"], after["headline"])
    assert [case["change"] for case in after["cases"]] == ["same"] * len(after["cases"])


def test_recorded_traces_get_added_metrics(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/fluxloop", tmp_path / "flux")
    folder = tmp_path / "flux"
    write(folder / "evals/scorers.py", SCORERS)
    write(folder / "agenteval.yaml", "metrics: [{python: 'evals/scorers.py:brevity', gating: false}]\n")
    traces = ("--traces", "traces/per_trace.jsonl")
    ended = run(folder, "configs/evaluation.yaml", *traces)
    assert "brevity" in scores_of(folder), ended.text
    assert "matches no case" not in ended.text
    (folder / "agenteval.yaml").unlink()
    run(folder, "configs/evaluation.yaml", *traces, out="plain")
    with_it, without = (
        [case["score"] for case in written(folder / name)["suites"][0]["cases"]] for name in ("out", "plain")
    )
    assert with_it == without
