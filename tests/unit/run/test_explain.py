"""``agenteval explain-gate``: what it says about the pool of a results file."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from agenteval.cli.main import main
from agenteval.core.writing import write_file
from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results, Run, RunUsage, Tool
from agenteval.results.rollup import summarise
from agenteval.results.store import InMemory, results_json

_CONFIG = "gate: {confirm: against-base}\n"


def _score(metric: str, passed: bool, threshold: bool) -> Score:
    return Score(
        id=metric, kind="standard", score=float(passed), passed=passed if threshold else None, status="scored"
    )


def _case(number: int, chance: random.Random, rate: float, metrics: dict[str, bool]) -> CaseResult:
    iterations = [
        IterationResult(
            index=index,
            status="passed",
            score=1.0,
            turns=[
                TurnResult(
                    index=0,
                    input="question",
                    ground_truth=None,
                    response="answer",
                    scores=[_score(name, chance.random() < rate, gates) for name, gates in metrics.items()],
                )
            ],
        )
        for index in range(3)
    ]
    return CaseResult(
        id=f"agent.yaml::case-{number}", name=f"case-{number}", status="passed", score=1.0, iterations=iterations
    )


def _write(
    folder: Path,
    *,
    runs: int = 10,
    cases: int = 50,
    rate: float = 0.8,
    metrics: dict[str, bool] | None = None,
    cost: float = 0.0,
) -> Path:
    """Write a report directory with a run and its pool."""
    chance = random.Random(1)
    names = metrics or {"equality": True, "tone": False}
    earlier = [
        PoolEntry(
            commit=None,
            run_id=f"run-{number}",
            created_at=f"2026-01-01T00:00:{number:02d}Z",
            cases={
                f"agent.yaml::case-{case}": PoolCase(
                    fingerprint="", scores={name: [float(chance.random() < rate) for _ in range(3)] for name in names}
                )
                for case in range(cases)
            },
        )
        for number in range(runs - 1)
    ]
    found = [_case(number, chance, rate, names) for number in range(cases)]
    started = "2026-01-02T00:00:00Z"
    summary = summarise(found).model_copy(update={"usage": RunUsage(cost_usd=cost)})
    results = Results(
        tool=Tool(version="0"),
        run=Run(id="newest", started_at=started, finished_at=started, duration_s=1.0, complete=True),
        summary=summary,
        suites=[SuiteResult(path="agent.yaml", name="suite", format="holodeck", fingerprint="f", cases=found)],
        pool=earlier,
    )
    report = folder / "agenteval-report"
    report.mkdir(exist_ok=True)
    write_file(report, "results.json", results_json(results, InMemory()))
    (folder / "agenteval.yaml").write_text(_CONFIG, encoding="utf-8")
    return report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _explained(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["explain-gate", *arguments]) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


def test_a_pool_is_explained_on_one_screen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, cost=1.5)
    text = _explained(capsys)
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) < 130
    assert "The pool: 10 runs of the base branch, 50 cases, 150 calls per run." in text
    assert "blocked by mistake: 0.4 %" in text
    assert "cost: 0.17 further runs on average, 26 calls ($0.26)" in text
    assert "benchmarks/gate, table A" in text
    assert "at most 8 further runs, and 480 calls for single cases ($16.80)" in text
    drop = re.search(r"equality: its mean falls by ([\d.]+) points or more", text)
    assert drop is not None
    # 2.78 · sqrt(.8 · .2 / 3 / 50)
    assert float(drop[1]) == pytest.approx(9.1, abs=0.8)
    assert "100 instead of 50 cases" in text
    assert "6 instead of 3 iterations per case" in text
    assert "note:" not in text


def test_a_metric_that_cannot_fail_the_gate_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder)
    assert "tone" not in _explained(capsys)
    (folder / "agenteval.yaml").write_text(
        "gate: {confirm: against-base, metrics: {tone: {gating: true}, equality: {gating: false}}}\n",
        encoding="utf-8",
    )
    text = _explained(capsys, "--config", "agenteval.yaml")
    assert "tone: its mean" in text
    assert "equality" not in text


def test_json_has_the_same_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = _write(folder, runs=3, cost=1.5)
    found = json.loads(_explained(capsys, str(report / "results.json"), "--json"))
    assert found["cost_per_call"] == pytest.approx(0.01)
    power = found["power"]
    assert (power["pool_runs"], power["cases"], power["run_calls"]) == (3, 50, 150)
    assert list(power["detectable"]) == ["equality"]
    assert [way["what"] for way in power["improvements"]] == ["iterations", "cases", "runs"]
    assert power["simulated"]["runs"] == 3


def test_one_run_says_what_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, runs=1)
    text = _explained(capsys)
    assert "equality: unknown until the base branch has two runs" in text
    assert "smaller drops" not in text


def test_an_agent_that_repeats_its_answers_needs_no_statistics(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(folder, runs=3, rate=1.0)
    text = _explained(capsys)
    assert "each change is repeated on both sides" in text
    assert "blocked by mistake: 0 %, at no cost" in text
    assert "proven by 6 calls" in text


def test_quarantined_cases_do_not_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder)
    entry = "{case: case-0, until: 2999-01-01}"
    (folder / "agenteval.yaml").write_text(
        f"gate: {{confirm: against-base, quarantine: [{entry}]}}\n", encoding="utf-8"
    )
    assert "49 cases, 147 calls" in _explained(capsys)


@pytest.mark.parametrize(
    ("gate", "note"),
    [
        ("{policy: any-flip}", "the gate decides by `policy: any-flip`"),
        ("{confirm: 'off'}", "these figures hold for `confirm: against-base`"),
    ],
)
def test_other_policies_are_named(folder: Path, capsys: pytest.CaptureFixture[str], gate: str, note: str) -> None:
    _write(folder)
    (folder / "agenteval.yaml").write_text(f"gate: {gate}\n", encoding="utf-8")
    assert note in _explained(capsys)


def test_a_metric_with_a_hostile_name_controls_no_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, metrics={"\x1b[31mred": True})
    assert "\x1b" not in _explained(capsys)


def test_a_run_without_a_gating_metric_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, metrics={"tone": False})
    assert "no metric that can fail the gate has a score" in _explained(capsys, status=2)


def test_a_metric_without_a_threshold_has_no_broken_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, metrics={"tone": False})
    (folder / "agenteval.yaml").write_text(
        "gate: {confirm: against-base, metrics: {tone: {gating: true}}}\n", encoding="utf-8"
    )
    text = _explained(capsys)
    assert "tone: its mean falls by" in text
    assert "a case that falls from 1 to 0: not provable by itself" in text


def test_a_run_of_quarantined_cases_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, cases=2)
    (folder / "agenteval.yaml").write_text("gate: {quarantine: [{case: '*', until: 2999-01-01}]}\n", encoding="utf-8")
    assert "no metric that can fail the gate has a score" in _explained(capsys, status=2)


def test_a_missing_file_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "agenteval-report" in _explained(capsys, status=2)


def test_the_figures_of_a_worse_run_are_named_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(folder) / "results.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    baseline = {"run_id": "old", "created_at": "2026-01-01T00:00:00Z"}
    content["comparison"] = {"baseline": baseline, "verdict": "regressed", "metrics": [], "cases": [], "policy": {}}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "note: this run is proven worse than its baseline" in _explained(capsys)
