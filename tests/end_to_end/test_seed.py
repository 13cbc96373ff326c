"""What is drawn from the seed of a run."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.conftest import Command
from tests.support import case, python_agent, said, write_suite

from agenteval.results.store import read_results

ANSWERS = """
import random, time
def reply(request):
    time.sleep(random.random() / 50)
    return "wrong" if request["case"] in ("3", "7") else request["input"]
"""


def test_the_same_seed_gives_the_same_results(tmp_path: Path, command: Command) -> None:
    names = [str(number) for number in range(20)]
    write_suite(tmp_path, [case(name) for name in names], agent=python_agent(tmp_path, ANSWERS))
    for out in ("one", "two"):
        command("run", "--iterations", "3", "--concurrency", "8", "--seed", "5", "--out", out)
    first, second = read_results(tmp_path / "one"), read_results(tmp_path / "two")
    assert said(first) == said(second)
    assert first.run.seed == second.run.seed == 5
    assert [found.name for _, found in first.cases()] == names
