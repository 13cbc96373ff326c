"""Several runs by one command or step: a baseline with the scores of all runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.test_action import Runner, pull_request
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


@pytest.mark.parametrize("runs", [1, 3])
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
