"""One run on several machines: its shards, and what they make when they are merged."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import QUICKSTART, ROOT, agenteval, case, python_agent, said, statuses, verdict_of, write_suite

from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.baseline import FoundBaseline, Search
from agenteval.run.context import RunContext
from agenteval.run.merge import merge_files
from agenteval.run.settings import Settings

SCHEMA = json.loads((ROOT / "schemas" / "results.schema.json").read_text(encoding="utf-8"))

# An agent that is as slow and as right as its input says.
OBEDIENT = """
import os
def reply(request):
    if request["input"] == "crash":
        raise RuntimeError("no model")
    return os.environ.get("ANSWER", request["input"])
"""


def suite_of(directory: Path, *names: str, **config: Any) -> None:
    """Cases whose names say what becomes of them."""
    answers = {"fail": "other", "skip": None}
    cases = [
        case(name, "crash" if name.startswith("crash") else "hello", answers.get(name[:4], "hello")) for name in names
    ]
    write_suite(directory, cases)
    agents = {"default": python_agent(directory, OBEDIENT)}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents, **config}), encoding="utf-8")


def recorded(directory: Path, **latencies_ms: float) -> None:
    """Cases with recorded answers that took so long."""
    write_suite(directory, [case(name) for name in latencies_ms], agent={"replay": "answers.jsonl"})
    lines = [
        json.dumps({"case": name, "response": "hello", "latency_ms": latency})
        for name, latency in latencies_ms.items()
    ]
    (directory / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")


def shards(command: Command, count: int, *arguments: str) -> list[str]:
    """Run every shard; the directories of their reports."""
    places = [f"shard-{number}" for number in range(1, count + 1)]
    for number, place in enumerate(places, start=1):
        done = command("run", "--shard", f"{number}/{count}", "--out", place, "--quiet", *arguments)
        assert done.status == 0, done.text
    return places


def names(place: str | Path) -> set[str]:
    return set(statuses(read_results(Path(place))))


def test_the_shards_of_the_quickstart_make_the_whole_run(tmp_path: Path) -> None:
    whole = agenteval("run", QUICKSTART, "--out", tmp_path / "whole", cwd=ROOT)
    assert whole.status == 0, whole.text
    for number in (1, 2, 3):
        done = agenteval("run", QUICKSTART, "--shard", f"{number}/3", "--out", tmp_path / f"{number}", cwd=ROOT)
        assert done.status == 0, done.text
        assert f"shard {number} of 3, {7 if number == 1 else 6} of 19 cases" in done.out
        part = json.loads((tmp_path / f"{number}" / "results.json").read_text(encoding="utf-8"))
        Draft202012Validator(SCHEMA).validate(part)
        assert (part["run"]["shard"]["index"], part["run"]["shard"]["count"]) == (number, 3)
        assert len(part["run"]["shard"]["cases"]) == 19
    files = [tmp_path / number for number in ("3", "1")]
    done = agenteval("merge", *files, tmp_path / "2" / "results.json", "-o", tmp_path / "merged", cwd=ROOT)
    assert done.status == 0, done.text
    assert verdict_of(done.out) == verdict_of(whole.out) == "passed: 19 of 19 cases passed"
    merged = read_results(tmp_path / "merged")
    # Merged runs cannot run again, so the gate finds something else with them.
    expected = said(read_results(tmp_path / "whole"))
    del expected["outlook"]
    assert said(merged) == expected
    assert merged.run.shard is None
    assert [entry.run_id for entry in merged.pool] == [merged.run.id]
    text = (tmp_path / "merged" / "results.json").read_text(encoding="utf-8")
    Draft202012Validator(SCHEMA).validate(json.loads(text))
    reports = {"comment.md", "junit.xml", "summary.md"}
    assert reports <= {path.name for path in (tmp_path / "merged").iterdir()}


def test_durations_of_the_baseline_divide_the_cases(command: Command, tmp_path: Path) -> None:
    recorded(tmp_path, a=1, b=1, slow=5000, c=1, d=1)
    command("run", "--out", "base", "--quiet")
    shards(command, 2)
    assert (names("shard-1"), names("shard-2")) == ({"a", "c", "slow"}, {"b", "d"})
    shards(command, 2, "--baseline", "base")
    assert (names("shard-1"), names("shard-2")) == ({"slow"}, {"a", "b", "c", "d"})
    assert read_results(Path("shard-1")).comparison is None
    done = command("merge", "shard-1", "shard-2", "-o", "merged", "--baseline", "base")
    assert done.status == 0, done.text
    merged = read_results(Path("merged"))
    assert list(statuses(merged)) == ["a", "b", "slow", "c", "d"]
    assert merged.comparison is not None
    assert [found.change for found in merged.comparison.cases] == ["unchanged"] * 5
    assert [entry.run_id for entry in merged.pool] == [read_results(Path("base")).run.id, merged.run.id]


def test_a_merged_run_is_compared_by_its_files_alone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite_of(tmp_path, *(f"case-{number}" for number in range(30)), gate={"confirm": "off"})
    command("run", "--out", "base", "--quiet")
    # A run with `confirm: off` is unproven; a merge decides by the files alone.
    monkeypatch.setenv("ANSWER", "wrong")
    whole = command("run", "--out", "whole", "--baseline", "base", "--fail-on", "regressions")
    parts = shards(command, 3, "--baseline", "base")
    done = command("merge", *parts, "-o", "merged", "--baseline", "base", "--fail-on", "regressions")
    assert (whole.status, done.status) == (0, 1), done.text
    first, second = (read_results(Path(place)).comparison for place in ("whole", "merged"))
    assert first is not None
    assert second is not None
    assert (first.verdict, second.verdict, second.stage) == ("unproven", "regressed", "files")
    assert [found.status_after for found in second.cases] == [found.status_after for found in first.cases]
    assert [metric.difference for metric in second.metrics] == [-1.0]
    assert command("merge", *parts, "-o", "merged", "--baseline", "base", "--fail-on", "none").status == 0


@dataclass(frozen=True)
class Remote:
    """A baseline that lies elsewhere."""

    results: Results
    asked: list[set[str]] = field(default_factory=list)

    def search(self, cases: Collection[str]) -> Search:
        self.asked.append(set(cases))
        return Search(FoundBaseline(self.results, distance=2), ("one run was left out",))


def test_a_baseline_may_lie_elsewhere(command: Command, tmp_path: Path) -> None:
    suite_of(tmp_path, "a", "b")
    command("run", "--out", "base", "--quiet")
    parts = [Path(place) for place in shards(command, 2)]
    remote = Remote(read_results(Path("base")))
    outcome = merge_files(parts, Path("merged"), Settings(), RunContext(baseline=remote))
    assert remote.asked == [{"agent.yaml::a", "agent.yaml::b"}]
    comparison = read_results(Path("merged")).comparison
    assert comparison is not None
    assert (comparison.baseline.run_id, comparison.baseline.distance) == (remote.results.run.id, 2)
    assert "one run was left out" in outcome.view.warnings


def test_confirmation_is_not_waited_for(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite_of(tmp_path, *(f"case-{number}" for number in range(30)))
    command("run", "--out", "base", "--quiet")
    monkeypatch.setenv("ANSWER", "wrong")
    parts = shards(command, 2, "--baseline", "base")
    done = command("merge", *parts, "-o", "merged", "--baseline", "base", "--fail-on", "regressions")
    assert done.status == 1, done.text
    assert "would confirm" not in done.text


def test_cases_that_a_filter_leaves_out_are_not_removed(command: Command, tmp_path: Path) -> None:
    suite_of(tmp_path, "a-1", "a-2", "a-3", "b-1")
    command("run", "--out", "base", "--quiet")
    done = command("merge", *shards(command, 2, "-k", "a-"), "-o", "merged", "--baseline", "base")
    assert done.status == 0, done.text
    merged = read_results(Path("merged"))
    assert merged.comparison is not None
    assert [found.name for found in merged.comparison.cases] == ["a-1", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("cases", "arguments", "status"),
    [
        (("pass", "fail"), (), 1),
        (("pass", "fail"), ("--fail-on", "none"), 0),
        (("pass", "fail"), ("--fail-on", "errors"), 0),
        (("pass", "crash"), ("--fail-on", "none"), 3),
        (("crash-1", "crash-2"), (), 3),
        (("pass", "skip"), (), 0),
    ],
)
def test_the_gate_is_that_of_the_merged_run(
    command: Command, tmp_path: Path, cases: tuple[str, ...], arguments: tuple[str, ...], status: int
) -> None:
    suite_of(tmp_path, *cases)
    whole = command("run", "--out", "whole", "--quiet", *arguments)
    done = command("merge", *shards(command, 2, *arguments), "-o", "merged", *arguments)
    assert (whole.status, done.status) == (status, status), done.text
    assert verdict_of(done.out) == verdict_of(whole.out)


def test_more_shards_than_cases(command: Command, tmp_path: Path) -> None:
    suite_of(tmp_path, "one", "two")
    command("run", "--out", "whole", "--quiet")
    places = shards(command, 5)
    assert [len(names(place)) for place in places] == [1, 1, 0, 0, 0]
    assert command("merge", *places, "-o", "merged").status == 0
    assert said(read_results(Path("merged"))) == said(read_results(Path("whole")))


def test_criteria_are_checked_on_the_whole(command: Command, tmp_path: Path) -> None:
    # In neither shard the share of errors is that of the run.
    wanted = {"error_rate_percent": 30, "quality": {"equality": 0.9}, "all_successful": True}
    suite_of(tmp_path, "a", "crash", "b", "c", criteria=wanted, gate={"max_error_rate": 1, "fail_on": ["failures"]})
    whole = command("run", "--out", "whole", "--quiet")
    places = shards(command, 2)
    for place in places:
        criteria = read_results(Path(place)).suites[0].criteria
        assert [(found.name, found.met) for found in criteria] == [
            ("all_traces_successful", None),
            ("error_rate", None),
            ("quality.equality", None),
        ]
    done = command("merge", *places, "-o", "merged")
    assert (whole.status, done.status) == (1, 1), done.text
    merged = read_results(Path("merged"))
    assert [found.met for found in merged.suites[0].criteria] == [False, True, True]
    assert merged.suites[0].criteria == read_results(Path("whole")).suites[0].criteria
    assert verdict_of(done.out) == verdict_of(whole.out)


@pytest.mark.parametrize("change", ["gone", "other", "broken"])
def test_criteria_of_a_suite_that_is_not_here(command: Command, tmp_path: Path, change: str) -> None:
    suite_of(tmp_path, "a", "b", criteria={"quality": {"equality": 0.9}})
    places = shards(command, 2)
    suite = tmp_path / "agent.yaml"
    if change == "gone":
        suite.unlink()
    elif change == "other":
        suite_of(tmp_path, "a", "b", "c", criteria={"quality": {"equality": 0.9}})
    else:
        suite.write_text("test_cases: [", encoding="utf-8")
    done = command("merge", *places, "-o", "merged")
    assert done.status == 1, done.text
    assert verdict_of(done.out) == "failed: criterion unchecked: quality.equality"
    assert "warning: agent.yaml: its criteria could not be checked: the suite is not available" in done.out
    merged = read_results(Path("merged"))
    assert [(found.met, found.threshold) for found in merged.suites[0].criteria] == [(None, 0.9)]
    assert merged.summary.passed == 2


def test_a_suite_of_fluxloop_and_its_own_report(command: Command) -> None:
    command("init", "--format", "fluxloop", "--agent", "python")
    whole = command("run", "configs/evaluation.yaml", "--out", "whole", "--quiet")
    done = command("merge", *shards(command, 3, "configs/evaluation.yaml"), "-o", "merged")
    assert (done.status, verdict_of(done.out)) == (whole.status, verdict_of(whole.out))
    assert sorted(path.name for path in Path("merged/evaluation").iterdir()) == sorted(
        path.name for path in Path("whole/evaluation").iterdir()
    )
    assert not Path("shard-1/evaluation").exists()
    criteria = [(found.name, found.met) for found in read_results(Path("merged")).suites[0].criteria]
    assert criteria == [(found.name, found.met) for found in read_results(Path("whole")).suites[0].criteria]
    assert len(names("merged")) == len(names("whole")) > 1


def test_further_runs_add_their_iterations(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite_of(tmp_path, "a", "b")
    command("run", "--out", "one", "--iterations", "2", "--quiet")
    monkeypatch.setenv("ANSWER", "wrong")
    command("run", "--out", "two", "--quiet")
    done = command("merge", "one", "two", "-o", "both.json")
    assert done.status == 0, done.text
    both = read_results(Path("both.json"))
    for _, found in both.cases():
        assert (found.status, found.score) == ("passed", 2 / 3)
        answers = [(item.index, item.turns[0].response) for item in found.iterations]
        assert answers == [(0, "hello"), (1, "hello"), (2, "wrong")]
    assert all(found.scores == {"equality": [1.0, 1.0, 0.0]} for found in both.pool[0].cases.values())
    assert Path("junit.xml").exists()
    command("run", "--out", "three", "--quiet")
    twice = command("merge", "both.json", "three", "two", "-o", "merged")
    assert (twice.status, shown(twice.err)[0].says("two/results.json: the same run is in both.json")) == (2, True)
    # As many wrong answers as right ones.
    assert command("merge", "both.json", "three", "-o", "merged").status == 1


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        ("0/3", "--shard: '0/3' asks for shard 0; there are shards 1 to 3"),
        ("4/3", "--shard: '4/3' asks for shard 4; there are shards 1 to 3"),
        ("1/1001", "--shard: '1/1001' asks for 1001 shards; allowed are 1 to 1000"),
        ("half", "--shard: 'half' is not of the form I/N, as in 2/5"),
    ],
)
def test_parts_that_there_are_not(command: Command, tmp_path: Path, shard: str, message: str) -> None:
    suite_of(tmp_path, "a")
    done = command("run", "--shard", shard)
    assert (done.status, [mistake.says(message) for mistake in shown(done.err)]) == (2, [True])
    assert not Path("agenteval-report").exists()


def test_a_shard_is_no_baseline(command: Command, tmp_path: Path) -> None:
    suite_of(tmp_path, "a", "b")
    first, second = shards(command, 2)
    message = "--baseline: this run cannot be a baseline: it is shard 1 of 2 of a run; merge the shards first"
    for arguments in (("run",), ("merge", first, second, "-o", "merged")):
        done = command(*arguments, "--baseline", first)
        assert (done.status, shown(done.err)[0].says(f"{first}/results.json: {message}")) == (2, True)
    assert not Path("merged").exists()


FILES: Mapping[str, str] = {
    "foreign.json": '{"results": []}',
    "broken.json": '{"schema_version": 1,',
    "newer.json": '{"schema_version": 99}',
}


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (("shard-1",), ["shard 2 of 2 is missing"]),
        (("shard-1", "shard-1/results.json"), ["shard-1/results.json: the same run is in shard-1/results.json"]),
        (("shard-1", "nowhere"), ["nowhere: no such results file"]),
        (
            ("shard-1", "foreign.json", "broken.json", "newer.json"),
            [
                "foreign.json: not the results of a run; understood are: results.json of agenteval",
                "broken.json:1: not valid JSON",
                "newer.json: written by a newer agenteval",
                "3 mistakes; nothing was merged",
            ],
        ),
        (
            ("shard-1", "other"),
            ["other/results.json: of suites with other cases or metrics than shard-1/results.json"],
        ),
        (("shard-1", "whole"), ["whole/results.json: a whole run, but shard-1/results.json is a shard"]),
        (("shard-1", "fewer"), ["fewer/results.json: part of a run of other cases than shard-1/results.json"]),
        (
            ("shard-1", "merged"),
            [
                "merged/results.json: a report would take the place of this results file",
            ],
        ),
    ],
)
def test_what_does_not_belong_together(
    command: Command, tmp_path: Path, given: tuple[str, ...], messages: list[str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    suite_of(tmp_path, "a", "b")
    shards(command, 2)
    command("run", "--out", "whole", "--quiet")
    command("run", "--out", "merged", "--quiet")
    command("run", "--out", "fewer", "--quiet", "--shard", "2/2", "-k", "::a")
    suite_of(tmp_path, "a", "b", "c")
    command("run", "--out", "other", "--quiet", "--shard", "2/2")
    before = Path("merged/results.json").read_bytes()
    done = command("merge", *given, "-o", "merged")
    assert (done.status, done.out) == (2, "")
    found = shown(done.err)
    said = [text for text in messages if text in done.err or any(mistake.says(text) for mistake in found)]
    assert said == messages
    assert Path("merged/results.json").read_bytes() == before
