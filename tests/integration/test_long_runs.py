"""A run that keeps only what reports show in memory reports the same as one that keeps every case."""

from __future__ import annotations

import gc
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import (
    PATIENCE_S,
    Ended,
    agenteval,
    case,
    environment,
    python_agent,
    results_in,
    run_plan,
    run_to_end,
    said,
    suite_plan,
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


@pytest.mark.long
@pytest.mark.parametrize("most", [store.MOST_SHOWN, 2])
@settings(max_examples=40, deadline=None)
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=40), chance=st.randoms(), split=st.integers(0, 40))
def test_reports_are_the_same_in_whatever_order_cases_end(
    most: int, kinds: list[str], chance: random.Random, split: int
) -> None:
    found = [KINDS[kind](f"{kind} {number}", SUITES[number >= split]) for number, kind in enumerate(kinds)]
    order = chance.sample(range(len(found)), chance.randint(0, len(found)))
    unfinished = {position for position in order if kinds[position] == "lost" and chance.random() < 0.5}
    whole, held = both_reports(found, order, unfinished, most)
    # What lists cases ends where no more of them are held.
    listing = {"summary.md", "comment.md", "table.txt", "annotations"} if most <= len(found) else set()
    assert {name: whole[name] for name in whole.keys() - listing} == {
        name: held[name] for name in held.keys() - listing
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


@pytest.mark.long
def test_memory_does_not_grow_with_what_passes(tmp_path: Path) -> None:
    amount = 3_000
    plan = planned([KINDS["passed"](str(number), SUITES[0]) for number in range(2 * amount)])
    kept = CaseStore(run_plan(tmp_path / "journal.jsonl", plan), len(plan))

    def finish(positions: range) -> int:
        for position in positions:
            kept.record(job(position, plan[position]), KINDS["half"](str(position), SUITES[0]))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = finish(range(amount))
        grown = finish(range(amount, 2 * amount)) - before
    finally:
        tracemalloc.stop()
    # Three scores here and three in the summary, two means, place, duration and the like, of eight bytes each.
    assert grown / amount < 150


# The whole command, with a limit on kept cases that small runs exceed.

LONG = """
import sys
import agenteval.run.store
agenteval.run.store.MOST_SHOWN = 8
from agenteval.cli.main import main
sys.argv[0] = "agenteval"
sys.exit(main(sys.argv[1:]))
"""
# Wrong in every fourth case; late ones end before early ones.
AGENT = """
import time
def reply(request):
    name, _, number = request["case"].rpartition(" ")
    if int(number) == 6:
        raise RuntimeError("no model")
    if name == "hang":
        time.sleep(1000)
    time.sleep(0.03 if int(number) % 3 == 0 else 0)
    return "wrong" if int(number) % 4 == 0 else {"response": request["input"], "usage": {"cost_usd": 0.1}}
"""
REPORTS = (
    "results.json",
    "junit.xml",
    "summary.md",
    "comment.md",
    "report.html",
    "trend.json",
    "badge.json",
    "findings.json",
)


def project(directory: Path, *names: str, **config: Any) -> None:
    """Two suites."""
    directory.mkdir(exist_ok=True)
    agents = {"default": python_agent(directory, AGENT, concurrency=4)}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents, **config}), encoding="utf-8")
    (directory / "second").mkdir(exist_ok=True)
    write_suite(directory / "second", [case(f"second {number}") for number in range(5)])
    write_suite(directory, [case(name) for name in names or [f"case {number}" for number in range(12)]])


def long_run(*arguments: str | Path, cwd: Path, **more: Any) -> Ended:
    """The command that keeps no more than eight cases of a kind."""
    return run_to_end([sys.executable, "-c", LONG, *map(str, arguments)], cwd, environment(**more))


def held_and_streamed(directory: Path, *arguments: str) -> tuple[Results, Results]:
    """The same run twice, both of which wrote every report and ended alike."""
    command = ("run", "agent.yaml", "second/agent.yaml", *arguments)
    held = agenteval(*command, "--out", "held", cwd=directory)
    streamed = long_run(*command, "--out", "streamed", cwd=directory)
    assert "Traceback" not in streamed.text, streamed.text
    assert (held.status, _lines(held.out, "held")) == (streamed.status, _lines(streamed.out, "streamed"))
    assert all((directory / "streamed" / name).stat().st_size for name in REPORTS)
    return read_results(directory / "held"), read_results(directory / "streamed")


def _lines(text: str, out: str) -> list[str]:
    """The lines, with one name for the directory of the reports, and without the duration."""
    lines = re.sub(rf"\b{out}\b", "OUT", text).splitlines()
    return [re.sub(r"  +", "  ", re.sub(r" · [\d.]+ s$", "", line)) for line in lines]


@pytest.mark.parametrize(
    "arguments",
    [(), ("--iterations", "3"), ("--shard", "1/2"), ("--shard", "2/2"), ("--fail-on", "none")],
    ids=" ".join,
)
def test_a_long_run_ends_like_a_short_one(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    quarantine = [{"case": "case 4", "until": date(2999, 1, 1), "reason": "known"}]
    project(tmp_path, gate={"quarantine": quarantine})
    held, streamed = held_and_streamed(tmp_path, *arguments)
    assert said(held) == said(streamed)
    assert held.run.complete
    assert streamed.run.complete


@pytest.mark.long
@pytest.mark.parametrize("resuming", [agenteval, long_run])
def test_an_interrupted_run_reports_what_finished_and_goes_on(tmp_path: Path, resuming: Any) -> None:
    names = [f"case {number}" for number in range(1, 8) if number != 6]
    project(tmp_path, "hang 2", *names)
    out = tmp_path / "agenteval-report"
    with subprocess.Popen(
        [sys.executable, "-c", LONG, "run", "agent.yaml", "--iterations", "2", "--quiet"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        journal = out / "journal.jsonl"
        while not (journal.exists() and journal.read_bytes().count(b'"case": ') == len(names)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    results = results_in(tmp_path)
    assert [found.name for _, found in results.cases()] == names
    assert (results.run.complete, results.summary.cases) == (False, len(names))
    assert list(results.baseline_runs[0].cases) == [f"agent.yaml::{name}" for name in names]
    size = journal.stat().st_size
    # What hung is asked again, and answers now.
    (tmp_path / "agent.py").write_text(AGENT.replace("sleep(1000)", "sleep(0)"), encoding="utf-8")
    head, *lines = journal.read_text(encoding="utf-8").split("\n")
    same = json.loads(head)
    same["conditions"] = _conditions(tmp_path)
    journal.write_text("\n".join([json.dumps(same), *lines]), encoding="utf-8")
    ended = resuming("run", "agent.yaml", "--iterations", "2", "--resume", cwd=tmp_path)
    assert "12 of 14 iterations are taken" in ended.err
    fresh = agenteval("run", "agent.yaml", "--iterations", "2", "--out", "fresh", cwd=tmp_path)
    assert ended.status == fresh.status
    assert said(results_in(tmp_path)) == said(read_results(tmp_path / "fresh"))
    assert journal.stat().st_size > size


def _conditions(directory: Path) -> dict[str, str]:
    """Those of a run with the agent as it is now."""
    agenteval("run", "agent.yaml", "--iterations", "2", "--out", "now", cwd=directory)
    lines = (directory / "now" / "journal.jsonl").read_text(encoding="utf-8").split("\n")
    found: dict[str, str] = json.loads(lines[0])["conditions"]
    return found
