"""What a comparison did not compare is named and never green: lost scores, empty baselines, parts of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import Ended, case, python_agent, results_in, verdict_of, write_suite

AGENT = """
def reply(request):
    if request["case"] in {crashing}:
        raise RuntimeError("no model")
    return request["input"]
"""


def project(directory: Path, *names: str, crashing: tuple[str, ...] = (), **keys: Any) -> None:
    write_suite(directory, [case(name) for name in names], **keys)
    agents = {"default": python_agent(directory, AGENT.format(crashing=set(crashing) or "()"))}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents}), encoding="utf-8")


def last_line(ended: Ended) -> str:
    return verdict_of(ended.out)


def test_lost_scores_are_named_in_every_outlet(tmp_path: Path, command: Command) -> None:
    names = [f"c{number}" for number in range(10)]
    project(tmp_path, *names)
    # It does not apply to answers for which a tool was called.
    metric = "def direct(answer):\n    return None if answer.tool_calls else 1.0\n"
    (tmp_path / "metric.py").write_text(metric, encoding="utf-8")
    config = tmp_path / "agenteval.yaml"
    added = yaml.safe_dump({"metrics": [{"python": "metric.py:direct", "threshold": 0.5}]})
    config.write_text(config.read_text(encoding="utf-8") + added, encoding="utf-8")
    assert command("run", "--out", "before").status == 0
    calling = """
def reply(request):
    calls = [{"name": "search", "args": {}, "result": "found"}] if request["case"] < "c6" else []
    return {"response": request["input"], "tool_calls": calls}
"""
    python_agent(tmp_path, calling)
    ended = command("run", "--baseline", "before", "--fail-on", "failures,regressions,unproven")
    lost = "6 of 10 cases have no score of 'direct': c0, c1, c2, c3, c4, …; run it again"
    assert (ended.status, lost in ended.out) == (3, True), ended.text
    gate = results_in(tmp_path).gate
    assert gate is not None
    assert gate.verdict == "unproven"
    assert lost in gate.reasons
    for report in ("comment.md", "summary.md", "report.html"):
        text = (tmp_path / "agenteval-report" / report).read_text(encoding="utf-8")
        assert "6 of 10 cases have no score of" in text, report


def skip_every_case(file: Path) -> None:
    """Rewrite results as those of a run that skipped all cases."""
    written = json.loads(file.read_text(encoding="utf-8"))
    for found in written["suites"][0]["cases"]:
        found |= {"status": "skipped", "score": None, "iterations": []}
    cases = written["summary"]["cases"]
    written["summary"] |= {"passed": 0, "failed": 0, "errors": 0, "skipped": cases, "score": None, "metrics": {}}
    file.write_text(json.dumps(written), encoding="utf-8")


@pytest.mark.parametrize("there", ["crash", "skip"])
def test_a_baseline_of_which_nothing_was_evaluated(tmp_path: Path, command: Command, there: str) -> None:
    write_suite(tmp_path, [case("a", there)])
    crashing = ("a",) if there == "crash" else ()
    agents = {"default": python_agent(tmp_path, AGENT.format(crashing=set(crashing) or "()"))}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents}), encoding="utf-8")
    command("run", "--out", "before")
    if there == "skip":
        # A suite without anything to compare with does not start, so a run of an earlier version stands for it.
        skip_every_case(tmp_path / "before" / "results.json")
    project(tmp_path, "a")
    assert command("run", "--out", "now").status == 0
    refused = "this run cannot be a baseline: none of its cases was evaluated: of 1, "
    for ended in (command("run", "--baseline", "before"), command("compare", "now", "before")):
        assert (ended.status, refused in ended.err) == (2, True), ended.text


def test_a_shard_is_refused_and_a_selection_is_compared_as_its_run_was(tmp_path: Path, command: Command) -> None:
    project(tmp_path, "x", "b", "c", "d")
    assert command("run", "--out", "before").status == 0
    assert command("run", "--shard", "1/2", "--out", "shard").status == 0
    ended = command("compare", "shard", "before")
    assert ended.status == 2
    (mistake,) = shown(ended.err)
    assert mistake.says("it is shard 1 of 2 of a run; merge the shards first, with agenteval merge")
    assert command("run", "-k", "x", "--out", "part").status == 0
    now = command("run", "-k", "x", "--baseline", "before")
    ended = command("compare", "part", "before")
    assert (ended.status, last_line(ended)) == (now.status, last_line(now))
    assert (ended.status, "1 of 4 cases selected (filter 'x')" in ended.out) == (0, True), ended.text


def test_a_suite_that_the_change_removed(tmp_path: Path, command: Command) -> None:
    project(tmp_path, "a", "b", "c", "d")
    (tmp_path / "more").mkdir()
    project(tmp_path / "more", "e", "f")
    assert command("run", "agent.yaml", "more/agent.yaml", "--out", "before").status == 0
    ended = command("run", "agent.yaml", "--baseline", "before")
    note = "more/agent.yaml is in the baseline and not in this run: 2 cases are not compared"
    assert (ended.status, note in ended.out) == (0, True), ended.text
    (tmp_path / "more" / "agent.yaml").unlink()
    ended = command("run", "agent.yaml", "--baseline", "before")
    lost = "2 of 6 cases of the baseline cannot be compared: 2 removed (e, f)"
    assert (ended.status, last_line(ended)) == (1, f"unproven: {lost}")
    written = json.loads((tmp_path / "agenteval-report" / "results.json").read_text(encoding="utf-8"))
    assert [point["what"] for point in written["comparison"]["unproven"]] == ["cases"]
