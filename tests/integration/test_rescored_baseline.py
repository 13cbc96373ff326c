"""Stored answers of the baseline are scored again when only the configuration of a metric changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agenteval import Case, MetricConfig, Suite, Turn, evaluate
from agenteval.results.comparison import Comparison
from agenteval.results.store import read_results

EXACT = MetricConfig("equality", "equality", "standard", 1.0, options={"case_insensitive": False})
LENIENT = replace(EXACT, options={"case_insensitive": True})
WORDS = [f"word{number}" for number in range(8)]
IDS = [f"s::{word}" for word in WORDS]


def suite(metric: MetricConfig) -> Suite:
    turns = [Turn(word, ground_truth=word, metrics=(metric,)) for word in WORDS]
    cases = tuple(Case(f"s::{turn.input}", turn.input, (turn,)) for turn in turns)
    return Suite("s", "s", "python", cases)


def shouting(question: str) -> str:
    return question.upper()


def wrong(question: str) -> str:
    return f"not {question}"


def ran(
    folder: Path, name: str, metric: MetricConfig, agent: Callable[[str], str], before: str = "", **keys: str
) -> Path:
    """Where a run is."""
    baseline = str(folder / before) if before else None
    evaluate(suite(metric, **keys), agent=agent, out=str(folder / name), baseline=baseline)
    return folder / name


def comparison(folder: Path) -> Comparison:
    found = read_results(folder).comparison
    assert found is not None
    return found


@pytest.mark.long
def test_a_changed_metric_has_a_baseline_and_a_worse_answer_raises_a_suspicion(tmp_path: Path) -> None:
    first = ran(tmp_path, "first", EXACT, shouting)
    assert read_results(first).summary.metrics["equality"].mean == 0.0
    ran(tmp_path, "second", EXACT, shouting, "first")
    same = ran(tmp_path, "same", LENIENT, shouting, "second")
    found = comparison(same)
    # The stored scores are 0; the stored answers are right under the new configuration.
    assert (found.metric("equality").earlier, found.suspicions) == (1.0, [])
    assert [(item.id, item.cases) for item in found.rescored] == [("equality", IDS)]
    assert all([(item.before, item.after) for item in case.metrics] == [(1.0, 1.0)] for case in found.cases)
    run_id = read_results(tmp_path / "second").run.id
    said = f"equality was scored again for the answers of run {run_id}, since it changed in 8 cases"
    assert said in found.notes
    worse = comparison(ran(tmp_path, "worse", LENIENT, wrong, "second"))
    assert (worse.metric("equality").earlier, worse.state) == (1.0, "unproven")
    # Later runs read the new scores from the baseline, and score nothing again.
    later = comparison(ran(tmp_path, "later", LENIENT, shouting, "same"))
    assert (later.state, later.rescored, later.metric("equality").runs) == ("clear", [], 3)


@pytest.mark.parametrize("answer", ["***", "word0 ***"])
def test_masked_answers_keep_their_scores(tmp_path: Path, answer: str) -> None:
    first = ran(tmp_path, "first", EXACT, shouting)
    file = first / "results.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"WORD0"', f'"{answer}"'), encoding="utf-8")
    run_id = read_results(first).run.id
    found = comparison(ran(tmp_path, "second", LENIENT, shouting, "first"))
    assert [item.cases for item in found.rescored] == [IDS[1:]]
    why = "in 1 case: stored answers contain masked secrets"
    assert f"equality was not scored again for the answers of run {run_id} {why}" in found.notes
    assert "the rules of 1 case changed since earlier runs (equality): not compared" in found.notes
