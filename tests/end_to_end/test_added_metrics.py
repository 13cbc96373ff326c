"""``metrics:`` of agenteval.yaml adds metrics to suites of every format, by the installed command."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.mistakes import shown
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


@pytest.mark.parametrize("suite", FORMATS)
def test_python_metrics_on_every_format(tmp_path: Path, suite: str) -> None:
    metrics = """
        metrics:
          - {python: "evals/scorers.py:brevity", threshold: 0.5, words: 30}
          - {python: "evals/scorers.py:brevity", options: {words: 1}, gating: false}
          - {python: "evals/scorers.py:later"}
          - {python: "evals/scorers.py:nothing"}
          - {type: rouge, variant: rouge2, id: overlap}
          - {python: "evals/scorers.py:later", suites: ["elsewhere/**"], id: unused}
          - {python: "evals/scorers.py:later", cases: ["no such*"], id: unused}
          - {python: "evals/scorers.py:later", tags: ["no such"], id: unused}
        gate: {fail_on: [regressions]}
    """
    ended = run(project(tmp_path, suite, metrics), suite)
    assert ended.status == 0, ended.text
    found = scores_of(tmp_path)
    said = {name: (score["kind"], score["score"], score["passed"], score["status"]) for name, score in found.items()}
    assert said["brevity"] == ("custom", 1.0, True, "scored")
    assert said["brevity#2"][:3] == ("custom", pytest.approx(1 / 3), None)
    assert said["later"] == ("custom", 1.0, True, "scored")
    assert (said["nothing"][3], found["nothing"]["reason"]) == ("skipped", "the metric does not apply")
    if suite == "agent.yaml":
        assert said["overlap"] == ("standard", 1.0, None, "scored")
    else:
        assert (said["overlap"][3], found["overlap"]["reason"]) == ("skipped", "the case has no ground_truth")
    assert "unused" not in said


@pytest.mark.parametrize("suite", FORMATS)
@pytest.mark.parametrize("name", ["refuses", "two", "broken", "hangs"])
def test_a_gating_metric_decides_on_every_format(tmp_path: Path, suite: str, name: str) -> None:
    metrics = f"""
        metrics:
          - {{python: "evals/scorers.py:{name}", timeout: 1}}
    """
    ended = run(project(tmp_path, suite, metrics), suite)
    (score,) = [score for key, score in scores_of(tmp_path).items() if key == name]
    case = written(tmp_path / "out")["suites"][0]["cases"][0]
    errors = {
        "two": "the score 2 is outside 0..1",
        "broken": "ValueError: no such luck",
        "hangs": "no result within 1 s",
    }
    if name == "refuses":
        assert (ended.status, case["status"], score["passed"]) == (1, "failed", False)
    else:
        assert (ended.status, case["status"], score["status"]) == (3, "error", "error")
        assert errors[name] in score["error"]


@pytest.mark.parametrize("suite", FORMATS)
@pytest.mark.parametrize("name", ["refuses", "broken"])
def test_an_informational_metric_never_decides(tmp_path: Path, suite: str, name: str) -> None:
    metrics = f"""
        metrics:
          - {{python: "evals/scorers.py:{name}", gating: false}}
    """
    ended = run(project(tmp_path, suite, metrics), suite)
    case = written(tmp_path / "out")["suites"][0]["cases"][0]
    assert case["status"] == "passed", ended.text


def test_a_class_says_what_it_needs_and_gets_its_options(tmp_path: Path) -> None:
    metrics = """
        metrics:
          - {python: "evals/scorers.py:Limit", letters: 3}
        gate: {fail_on: [regressions]}
    """
    assert run(project(tmp_path, "agent.yaml", metrics), "agent.yaml").status == 0
    found = scores_of(tmp_path)["Limit"]
    assert (found["score"], found["passed"], found["reason"], found["details"]) == (0.25, True, "a reason", {"n": 1})
    other = project(tmp_path / "other", ".agentci/evals/answers.toml", metrics)
    assert run(other, ".agentci/evals/answers.toml").status == 0
    assert scores_of(other)["Limit"]["reason"] == "the case has no ground_truth"


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


WRONG: Mapping[str, str] = {
    "{type: rouje}": "agenteval.yaml:3: metrics[0].type: no metric 'rouje'; did you mean 'rouge'?",
    "{type: rouge, varient: rouge1}": "unknown key; did you mean 'variant'?",
    "{type: rouge, variant: rouge9}": (
        "'rouge9' is not allowed; did you mean 'rougeL'?; allowed: rouge1, rouge2, rougeL"
    ),
    "{python: 'evals/none.py:x'}": "agenteval.yaml:3: metrics[0].python: file 'evals/none.py' does not exist",
    "{python: 'evals/scorers.py'}": "must be `path.py:name` or `module:name`",
    "{python: 'evals/scorers.py:brevty'}": "agenteval.yaml:3: python: the python 'evals/scorers.py:brevty' cannot be",
    "{python: 'evals/scorers.py:brevity', wrds: 3}": "unexpected keyword argument 'wrds'",
    "{type: rouge, python: 'a:b'}": "needs exactly one of `python` and `type`",
    "{type: geval, criteria: Kind?}": "geval needs `model`, here or as `judge:` of this file",
    "{type: rouge, threshold: 2}": "metrics[].threshold",
    "{type: acme.toxicty}": "did you mean 'acme.toxicity'?",
    "{type: rag, metric_type: faith, model: openai/gpt-4o}": "metrics[].metric_type",
}


@pytest.mark.parametrize("entry", WRONG)
def test_mistakes_are_named_before_an_agent_is_asked(tmp_path: Path, entry: str) -> None:
    folder = project(tmp_path, "agent.yaml", f"metrics:\n  - {entry}\n")
    ended = run(folder, "agent.yaml", PYTHONPATH=str(plugin(tmp_path / "site")))
    assert ended.status == 2, ended.text
    assert any(mistake.says(WRONG[entry]) or WRONG[entry] in mistake.text for mistake in shown(ended.err)), ended.err
    assert "Traceback" not in ended.err


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


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{python: 'evals/scorers.py:missing'}", "has no attribute 'missing'"),
        ("{python: 'evals/none.py:brevity'}", "file 'evals/none.py' does not exist"),
        ("{python: 'evals/scorers.py:brevity', letters: 3}", "unexpected keyword argument 'letters'"),
        ("{python: 'evals/imports.py:metric'}", "No module named 'nowhere'"),
        ("{python: 'evals/needs.py:metric'}", "`requires` names 'ground_thruth'; did you mean 'ground_truth'?"),
        ("{python: 'evals/needs.py:text'}", "`requires` must be a list or set of names"),
    ],
)
def test_validate_and_run_refuse_the_same_python_metrics(tmp_path: Path, entry: str, problem: str) -> None:
    project(tmp_path, "agent.yaml", f"metrics:\n  - {entry}\n")
    write(tmp_path / "evals/imports.py", "import nowhere\ndef metric(answer):\n    return 1\n")
    needs = "def metric(answer):\n    return 1\nmetric.requires = ['ground_thruth']\n"
    write(
        tmp_path / "evals/needs.py", needs + "class text:\n    requires = 'x'\n    def measure(self, answer): ...\n"
    )
    validated = agenteval("validate", cwd=tmp_path, env=environment())
    ran = run(tmp_path, "agent.yaml")
    # An import that fails is a defect of the setup.
    status = 3 if "imports.py" in entry else 2
    for ended in (validated, ran):
        assert (ended.status, problem in ended.text) == (status, True), ended
        (mistake,) = shown(ended.err)
        assert mistake.place == "agenteval.yaml:3"


def test_metrics_without_effect_on_recorded_traces_are_warnings(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/fluxloop", tmp_path / "flux")
    folder = tmp_path / "flux"
    entries = """
        metrics:
          - {type: latency, maximum: 1, id: unused}
          - {python: "evals/scorers.py:brevity", suites: ["other*"], id: elsewhere}
    """
    write(folder / "agenteval.yaml", entries)
    write(folder / "evals/scorers.py", SCORERS)
    ended = run(folder, "configs/evaluation.yaml", "--traces", "traces/per_trace.jsonl")
    assert "metric 'elsewhere' matches no case" in ended.text
    assert "metric 'unused' compares the iterations of a case, so it does not score recorded traces" in ended.text


def test_metrics_without_effect_are_warnings(tmp_path: Path) -> None:
    entries = """
        metrics:
          - {python: "evals/scorers.py:later", cases: ["refund*"], id: unmatched}
          - {python: "evals/scorers.py:nothing", gating: false}
          - {python: "evals/scorers.py:brevity"}
    """
    project(tmp_path, "agent.yaml", entries)
    ended = run(tmp_path, "agent.yaml")
    assert ended.status == 0
    assert "metric 'unmatched' matches no case; check its `suites`, `cases` and `tags`" in ended.text
    assert "metric 'nothing' has no score in this run" in ended.text
    assert "'brevity'" not in ended.text
