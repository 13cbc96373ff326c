"""Several runs by one command or step: a baseline with the scores of all runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.test_action import Runner, pull_request
from tests.mistakes import shown
from tests.support import case, open_folder, results_in, write_suite

from agenteval.results.store import read_results

# Answers with the number of its answers.
COUNTING = "echo >>count; printf 'run %s' $(wc -l <count)"


def counting(folder: Path) -> Path:
    """Write a suite of one case, which always passes; return the file with a line for each answer."""
    metric = {"type": "standard", "metric": "f1_score", "threshold": 0.1}
    agent = {"command": ["/bin/sh", "-c", COUNTING]}
    write_suite(folder, [case("a", ground_truth="run")], agent=agent, evaluations={"metrics": [metric]})
    return folder / "count"


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_the_baseline_has_every_run(runs: int, tmp_path: Path, command: Command) -> None:
    counting(tmp_path)

    ended = command("run", "--runs", str(runs))

    assert ended.status == 0, ended.text
    results = results_in(tmp_path)
    assert len(results.baseline_runs) == len({run.run_id for run in results.baseline_runs}) == runs
    # The reports are those of the last run.
    [[_, last]] = results.cases()
    assert last.iterations[0].turns[0].response == f"run {runs}"
    assert (results.comparison is None) == (runs == 1)
    assert [line for line in ended.err.splitlines() if line.startswith("agenteval: run ")] == [
        f"agenteval: run {number} of {runs}" for number in range(2, runs + 1)
    ]
    # The next run of the branch continues the baseline.
    assert command("run", "--baseline", "agenteval-report", "--out", "next").status == 0
    assert len(read_results(tmp_path / "next").baseline_runs) == runs + 1


def test_a_run_that_cannot_be_a_baseline_is_the_last(tmp_path: Path, command: Command) -> None:
    write_suite(tmp_path, [case("a")], agent={"command": ["false"]})

    ended = command("run", "--runs", "3")

    assert ended.status == 3
    assert (
        "agenteval: run 1 of 3 is the last: none of its cases was evaluated: of 1, 1 ended in an error" in ended.err
    )
    assert "run 2" not in ended.err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--shard", "1/2"], "a shard"),
        (["--filter", "case"], "selected cases"),
        (["--tag", "x"], "selected cases"),
        (["--resume"], "a resumed run"),
    ],
)
def test_parts_make_no_baseline(option: list[str], said: str, tmp_path: Path, command: Command) -> None:
    asked = counting(tmp_path)

    ended = command("run", "--runs", "2", *option)

    assert (ended.status, asked.exists()) == (2, False)
    (mistake,) = shown(ended.err)
    assert mistake.title == f"several runs make a baseline of whole runs, so they cannot be of {said}"
    assert "\n  = help: use one run\n" in mistake.text


@pytest.fixture
def runner(nothing_there: str) -> Iterator[Runner]:
    with open_folder() as folder:
        yield Runner(folder, nothing_there)


@pytest.mark.long
@pytest.mark.parametrize(
    ("event", "inputs", "said"),
    [
        ("pull_request", {}, "pull_request events have one run"),
        ("merge_group", {}, "merge_group events have one run"),
        ("push", {"mode": "gate"}, "has no effect with mode gate"),
    ],
)
def test_a_change_is_not_compared_with_itself(event: str, inputs: dict[str, str], said: str, runner: Runner) -> None:
    asked = counting(runner.workspace)

    step = runner.step(event, pull_request(), inputs={"runs": "2", "comment": "never", **inputs})

    assert (step.ended.status, asked.exists()) == (2, False)
    assert any(f"runs: {said}" in line for line in step.commands), step.commands
