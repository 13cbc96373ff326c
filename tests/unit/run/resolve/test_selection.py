"""Which cases a run selects by name, and by how they ended in an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import case as suite_case
from tests.support import write_suite
from tests.unit import runs

from agenteval.results.history import why_no_baseline
from agenteval.results.model import Results
from agenteval.results.store import IN_MEMORY, results_json
from agenteval.run.config import Settings
from agenteval.run.evaluate import compare
from agenteval.run.resolve.selection import failed_cases
from agenteval.run.resolve_run import resolve_files

NAMES = ("refund", "refund late", "greeting", "goodbye")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path, [suite_case(name) for name in NAMES], agent={"command": ["cat"]})
    return tmp_path


def write(file: str, results: Results) -> None:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(results_json(results, IN_MEMORY)), encoding="utf-8")


def failing(*names: str, run_id: str = "now") -> Results:
    return runs.results(
        *(runs.case(name, "failed" if name in names else "passed") for name in dict.fromkeys((*NAMES, *names))),
        run_id=run_id,
    )


def test_conditions_narrow_each_other_down(folder: Path) -> None:
    write("failed/results.json", failing("refund", "goodbye"))
    earlier = Path("failed")
    table: list[tuple[dict[str, Any], list[str]]] = [
        ({"cases": ("refund",)}, ["refund"]),
        ({"cases": ("agent.yaml::refund late",)}, ["refund late"]),
        ({"cases": ("goodbye", "refund", "goodbye")}, ["refund", "goodbye"]),
        ({"cases": ("refund", "greeting"), "filter": "GREET"}, ["greeting"]),
        ({"failed_in": earlier}, ["refund", "goodbye"]),
        ({"failed_in": earlier, "filter": "bye"}, ["goodbye"]),
        ({"failed_in": earlier, "cases": ("refund", "greeting")}, ["refund"]),
    ]
    found = {str(given): [item.case.name for item in resolve_files(Settings(**given)).cases] for given, _ in table}
    assert found == {str(given): expected for given, expected in table}


def test_cases_that_broke_failed_or_could_not_be_run_are_taken(folder: Path) -> None:
    names = ("passed", "failed", "error", "no metric applies", "over budget", "broke", "may be worse")
    before = runs.results(*(runs.case(name, scores=[{"numeric": 1.0}] * 3) for name in names), run_id="before")
    now = runs.results(
        runs.case("passed"),
        runs.case("failed", "failed"),
        runs.case("error", "error"),
        with_score("no metric applies", runs.skipped()),
        with_score("over budget", runs.not_asked()),
        runs.case("broke"),
        runs.case("may be worse"),
    )
    compared = compare(now, before)
    moved = [
        item.model_copy(update={"change": "broke" if item.name == "broke" else "same"}) for item in compared.cases
    ]
    now = now.model_copy(update={"comparison": compared.model_copy(update={"cases": moved})})
    write("report/results.json", now)
    expected = tuple(f"agent.yaml::{name}" for name in ("failed", "error", "over budget", "broke"))
    assert failed_cases(Path("report")) == ("report/results.json", expected)


def with_score(name: str, score: Any) -> Any:
    skipped = runs.case(name, "skipped", scores=[])
    return skipped.model_copy(update={"iterations": [runs.iteration("skipped", runs.turn(score))]})


def test_a_run_of_chosen_cases_says_so_and_is_no_baseline(folder: Path) -> None:
    write("report/results.json", failing("refund"))
    many = Settings(cases=NAMES[:1] + tuple(f"agent.yaml::{name}" for name in NAMES[:3]))
    table = [
        (Settings(cases=("refund",)), "1 of 4 cases selected (case refund)"),
        (
            many,
            "3 of 4 cases selected (cases refund, agent.yaml::refund, agent.yaml::refund late and 1 more)",
        ),
        (Settings(failed_in=Path("report")), "1 of 4 cases selected (failed in report)"),
        (Settings(cases=NAMES), ""),
    ]
    for settings, note in table:
        coverage = resolve_files(settings).coverage
        assert coverage.selection_note == note
        whole = runs.results(runs.case("refund"))
        part = whole.model_copy(update={"run": whole.run.model_copy(update={"coverage": coverage})})
        assert why_no_baseline(part) == (f"it is partial: {note}" if note else "")
    assert not {"names", "failed_in"} & json.loads(resolve_files(Settings()).coverage.model_dump_json()).keys()
