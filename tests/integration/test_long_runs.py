"""A run that keeps only what reports show in memory reports the same as one that keeps every case."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.end_to_end.conftest import Command
from tests.support import (
    case,
    run_plan,
    said,
    suite_plan,
    verdict_of,
    write_suite,
)
from tests.unit import runs

from agenteval.agents.registry import build_agent
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.gate.run_scores import entry_without_cases
from agenteval.gate.values import Quarantine
from agenteval.gate.verdict import GatePolicy, decide_gate, is_quarantined_by_name, quarantined
from agenteval.report.facts import facts
from agenteval.report.overview import annotate
from agenteval.report.report import print_result, write_reports
from agenteval.results.case import CaseResult, SuiteResult, Usage
from agenteval.results.model import Results, RunUsage
from agenteval.results.store import read_results
from agenteval.run import store
from agenteval.run.plan import Job, PlannedCase
from agenteval.run.store import CaseStore
from agenteval.suite.model import AgentSpec, Case, Suite, Turn

SUITES = ("agent.yaml", "other.yaml")
# Every kind of case that reports treat in a way of its own.
KINDS: dict[str, Callable[[str, str], CaseResult]] = {
    "passed": lambda name, suite: runs.case(name, scores=[{"numeric": 0.7}], suite=suite),
    "half": lambda name, suite: runs.case(name, scores=[{"bleu": 0.5}, {"bleu": 0.9, "numeric": 0.1}], suite=suite),
    "failed": lambda name, suite: runs.case(name, "failed", [{"numeric": 0.1}], "a\u2028b </script> ]]>", suite),
    "long": lambda name, suite: runs.case(name, "failed", [{"numeric": 0.3}], "long " * 60_000, suite),
    "lost": lambda name, suite: _with_turn(runs.case(name, "error", suite=suite), response=None, error="no model"),
    "skipped": lambda name, suite: _with_turn(runs.case(name, "skipped", suite=suite), scores=[runs.skipped()]),
    "partly": lambda name, suite: _with_turn(
        runs.case(name, suite=suite), scores=[runs.score(value=1 / 3), runs.broken("judge")]
    ),
    "costly": lambda name, suite: _with_turn(
        runs.case(name, suite=suite),
        usage=Usage(input_tokens=7, cost_usd=0.1),
        latency_ms=1.5,
        retries=2,
        scores=[runs.score(value=0.1)],
    ),
}


def _with_turn(found: CaseResult, **changes: Any) -> CaseResult:
    """The case with another first turn."""
    first = found.iterations[0]
    turn = first.turns[0].model_copy(update=changes)
    return found.model_copy(
        update={"iterations": [first.model_copy(update={"turns": [turn]}), *found.iterations[1:]]}
    )


def planned(found: Sequence[CaseResult]) -> list[PlannedCase]:
    """A plan of the cases that were found."""
    agent = AgentSpec(kind="python", target="agent:reply", directory="")
    suites = {path: Suite(path=path, name=path, format="holodeck", cases=()) for path in SUITES}
    turns = (Turn("question"),)
    return [
        PlannedCase(suites[item.id.partition("::")[0]], Case(item.id, item.name, turns), agent, 1) for item in found
    ]


def job(position: int, item: PlannedCase) -> Job:
    return Job(item, suite_plan(), build_agent(item.agent, 1, Gateway(LlmSettings())), position=position)


def run_of(
    directory: Path, found: Sequence[CaseResult], order: Sequence[int], unfinished: set[int], **more: Any
) -> tuple[CaseStore, Results]:
    """The results of cases that ended in some order, of which some did not finish."""
    plan = planned(found)
    kept_cases = CaseStore(run_plan(directory / "journal.jsonl", plan, **more), len(plan))
    with kept_cases.journal as journal:
        journal.begin("run-1", {})
        for position in order:
            if position in unfinished:
                kept_cases.unfinished(position, plan[position], found[position])
            else:
                kept_cases.record(job(position, plan[position]), found[position])
    cases = kept_cases.shown()
    results = runs.results(run_id="run-1").model_copy(
        update={
            "summary": kept_cases.summary(RunUsage(cost_usd=0.3)),
            "suites": [
                SuiteResult(path=path, name=path, format="holodeck", fingerprint="f", cases=cases.get(path, []))
                for path in SUITES
            ],
        }
    )
    return kept_cases, results.model_copy(update={"baseline_runs": [entry_without_cases(results)]})


def reports(directory: Path, kept: CaseStore, results: Results, policy: GatePolicy) -> dict[str, Any]:
    """Everything that is said of a run, by file."""
    gate = decide_gate(results, policy, date(2026, 1, 1))
    report = facts(results, gate, kept.warnings, archive=kept)
    report = write_reports(report, directory / "results.json")
    with (directory / "table.txt").open("w", encoding="utf-8") as table:
        print_result(report, table)
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".jsonl"}
    return {
        **files,
        "annotations": annotate(report),
        "gate": gate,
        "quarantined": quarantined(results, policy, date(2026, 1, 1)),
        "warnings": report.warnings,
        "size": report.about.size,
    }


@pytest.mark.parametrize("kind", ["costly", "failed", "lost"])
@pytest.mark.parametrize("suites", [SUITES[:1], SUITES])
def test_reports_of_a_run_whose_cases_are_not_all_held(suites: Sequence[str], kind: str) -> None:
    found = [KINDS[kind](f"{kind} {number}", suites[number % len(suites)]) for number in range(6)]
    whole, held = both_reports(found, range(6), set(), most=2)
    listing = {"summary.md", "comment.md", "table.txt"}
    assert {name: whole[name] for name in whole.keys() - listing} == {
        name: held[name] for name in held.keys() - listing
    }
    for name in listing:
        assert whole[name].splitlines()[0] == held[name].splitlines()[0]
    assert (
        _sizes(held["summary.md"])
        == _sizes(whole["summary.md"])
        == [str(6 // len(suites))] * len(suites) + ["0"] * (len(SUITES) - len(suites))
    )


def _sizes(summary: bytes) -> list[str]:
    """The numbers of cases in the table of suites."""
    table = summary.decode().partition("| Suite | File | Format | Cases |")[2].partition("\n\n")[0]
    return [row.split("|")[4].strip() for row in table.splitlines()[2:]]


def both_reports(
    found: Sequence[CaseResult], order: Sequence[int], unfinished: set[int], most: int, room: int = 8_000_000
) -> list[dict[str, Any]]:
    """The reports of a run whose cases are all held in memory, and of one that holds only so many in full."""
    policy = GatePolicy(quarantine=(Quarantine("*3", date(2027, 1, 1)),))
    with (
        tempfile.TemporaryDirectory() as place,
        patch.object(store, "MOST_SHOWN", most),
        patch.object(store, "_MOST_IN_FULL", room),
        patch.object(store, "_CASES_AT_ONCE", 3),
    ):
        said = []
        for name in ("all", "shown"):
            directory = Path(place, name)
            directory.mkdir()
            more = {"compared": name == "all", "is_quarantined_by_name": partial(is_quarantined_by_name, policy)}
            kept_cases, results = run_of(directory, found, order, unfinished, **more)
            said.append(reports(directory, kept_cases, results, policy))
        assert len(read_results(directory).baseline_runs[0].cases) == len(order)
        return said


def test_what_no_report_lists_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_SHOWN", 3)
    order = random.Random(5).sample(range(400), 400)
    kinds = ["passed"] * 100 + ["failed"] * 100 + ["half"] * 100 + ["partly"] * 2 + ["passed"] * 98
    found = [KINDS[kind](f"{kind} {position}", SUITES[0]) for position, kind in enumerate(kinds)]
    monkeypatch.setattr(store, "_MOST_IN_FULL", 50 * len(found[100].model_dump_json().encode()))
    kept, _ = run_of(tmp_path, found, order, set(), is_quarantined_by_name=lambda item: item.name == "passed 350")
    held = {item.name: item for item in kept.shown()[SUITES[0]]}
    passed = {"passed 0", "passed 1", "passed 2", "half 200", "partly 300", "partly 301", "passed 350"}
    assert held.keys() == {f"failed {number}" for number in range(100, 200)} | passed
    assert next(name for name, item in held.items() if not item.iterations) == "failed 150"
    assert held["failed 149"] == found[149]


# The whole command, with a limit on kept cases that small runs exceed.


@pytest.mark.parametrize("arguments", [(), ("--iterations", "3"), ("--shard", "1/2")], ids=" ".join)
def test_a_long_run_ends_like_a_short_one(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    cases = [case(f"case {number}", ground_truth="hello" if number % 4 else "other") for number in range(12)]
    write_suite(tmp_path, cases, agent={"command": ["echo", "{input}"]})
    found = []
    for out, most in (("held", store.MOST_SHOWN), ("streamed", 4)):
        monkeypatch.setattr(store, "MOST_SHOWN", most)
        ended = command("run", *arguments, "--out", out)
        written = sorted(path.name for path in (tmp_path / out).iterdir())
        found.append((ended.status, verdict_of(ended.out), written, said(read_results(tmp_path / out))))
    for one, other in zip(*found, strict=True):
        assert one == other
