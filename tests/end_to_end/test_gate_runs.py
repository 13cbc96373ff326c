"""The gate over whole runs of an agent that is subject to chance: the quickstart, with its noise switched on."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.support import FOREIGN_VARIABLES, ROOT, verdict_of

from agenteval.cli import main as cli
from agenteval.results.comparison import Comparison
from agenteval.results.store import read_results

SUITE = "examples/quickstart/agent.yaml"
RUNS = 10


def copy_of_quickstart(folder: Path) -> Path:
    """A folder with the example, as a user has it."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples" / "quickstart", folder / "examples" / "quickstart", ignore=ignored)
    return folder


def evaluate(place: Path, seed: int, out: Path, baseline: Path | None = None, **variables: str) -> int:
    """One noisy run with three iterations of every case; its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(FOREIGN_VARIABLES):
                patch.delenv(name)
        for name, value in {"QUICKSTART_NOISE": "0.1", "QUICKSTART_SEED": str(seed), **variables}.items():
            patch.setenv(name, value)
        patch.chdir(place)
        arguments = ["run", SUITE, "--quiet", "--iterations", "3", "--fail-on", "regressions", "--out", str(out)]
        return cli.main([*arguments, *(["--baseline", str(baseline)] if baseline else [])])


def comparison(out: Path) -> Comparison:
    found = read_results(out).comparison
    assert found is not None
    return found


def regressed(out: Path) -> list[str]:
    return [case.name for case in comparison(out).cases if case.change == "regressed"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_quickstart(tmp_path_factory.mktemp("gate"))


@pytest.fixture(scope="module")
def statuses(place: Path) -> list[int]:
    """Ten runs without a change, each with the one before as its baseline, in ``1`` to ``10``."""
    ended = []
    for number in range(1, RUNS + 1):
        earlier = place / str(number - 1) if number > 1 else None
        ended.append(evaluate(place, number, place / str(number), earlier))
    return ended


@pytest.mark.long
def test_chance_raises_no_alarm(place: Path, statuses: list[int]) -> None:
    assert statuses == [0] * RUNS
    runs = [read_results(place / str(number)) for number in range(1, RUNS + 1)]
    # It was there all along: something fails in every run, and no two are alike.
    for run in runs:
        assert any(iteration.status == "failed" for _, case in run.cases() for iteration in case.iterations)
    assert len({run.summary.score for run in runs}) == RUNS
    assert [len(run.pool) for run in runs] == list(range(1, RUNS + 1))
    assert "regressed" not in {run.comparison.verdict for run in runs if run.comparison}
    assert [metric.runs for metric in comparison(place / str(RUNS)).metrics] == [RUNS - 1] * 5


def test_flips_are_shown_as_suspects_and_wavering_cases_with_their_history(place: Path, statuses: list[int]) -> None:
    assert statuses[-1] == 0
    cases = [case for number in range(2, RUNS + 1) for case in comparison(place / str(number)).cases]
    suspects = [case for case in cases if "suspect" in case.notes]
    flaky = [case for case in cases if "flaky" in case.notes]
    assert suspects
    assert flaky
    assert all(case.change != "regressed" for case in suspects)
    assert all(case.history and case.history.iterations >= RUNS and case.history.pass_rate < 1 for case in flaky)


@pytest.mark.long
def test_a_worse_agent_is_caught(place: Path, statuses: list[int]) -> None:
    assert statuses[3] == 0
    assert evaluate(place, 99, place / "worse", place / "4", QUICKSTART_RANKING="first-match") == 1
    found = comparison(place / "worse")
    # Without a repository there is no control.
    assert (found.verdict, found.stage, found.policy["confirmed"]) == ("regressed", "earlier-runs", True)
    assert "so drift cannot be told from regression" in found.policy["reason"]
    assert "no-cash" not in regressed(place / "worse")


@pytest.mark.long
def test_comparing_its_file_alone_finds_an_unmistakable_drop(
    place: Path, statuses: list[int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert statuses[3] == 0
    evaluate(place, 98, place / "suspicious", place / "4", QUICKSTART_RANKING="first-match")
    capsys.readouterr()
    monkeypatch.chdir(place)
    assert cli.main(["compare", "suspicious", "4", "--fail-on", "regressions"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"\w+ fell by [\d.]+ points\. Without a change, that has a probability of ", said)


def test_a_single_broken_case_is_caught_by_name(
    place: Path, statuses: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert statuses[2] == 0
    broken = copy_of_quickstart(tmp_path)
    page = broken / "examples" / "quickstart" / "docs" / "payment.md"
    right = page.read_text(encoding="utf-8")
    wrong = right.replace("bank transfer, but no cash.", "bank transfer, and cash.")
    assert wrong != right
    page.write_text(wrong, encoding="utf-8")
    assert evaluate(broken, 97, tmp_path / "report", place / "3") == 1
    assert regressed(tmp_path / "report") == ["no-cash"]
    found = comparison(tmp_path / "report")
    assert [metric.runs for metric in found.metrics] == [3] * 5
    said = capsys.readouterr().out
    assert "✗ no-cash  baseline 9/9 → here 0/3" in said
    assert "It failed 3 of 3 re-runs here, 0 of 9 iterations in the earlier runs." in " ".join(said.split())
    assert verdict_of(said) == "failed: 'no-cash' broke"
