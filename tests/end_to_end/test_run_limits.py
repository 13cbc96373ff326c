"""Time limits of a run, and what is drawn from its seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.end_to_end.conftest import Command
from tests.support import case, python_agent, said, write_suite

from agenteval.results.store import read_results

# Case "slow" never answers; the others do at once.
AGENT = """
import time
def reply(request):
    if request["case"].startswith("slow"):
        time.sleep(1000)
    return request["input"]
"""


def project(directory: Path, *names: str, agent: dict[str, Any] | None = None, **config: Any) -> None:
    agents = {"default": agent or python_agent(directory, AGENT)}
    write_suite(directory, [case(name) for name in names])
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents, **config}), encoding="utf-8")


# Chance

ANSWERS = """
import random, time
def reply(request):
    time.sleep(random.random() / 50)
    return "wrong" if request["case"] in ("3", "7") else request["input"]
"""


def test_the_same_seed_gives_the_same_results(tmp_path: Path, command: Command) -> None:
    names = [str(number) for number in range(20)]
    project(tmp_path, *names, agent=python_agent(tmp_path, ANSWERS))
    for out in ("one", "two"):
        command("run", "--iterations", "3", "--concurrency", "8", "--seed", "5", "--out", out)
    first, second = read_results(tmp_path / "one"), read_results(tmp_path / "two")
    assert said(first) == said(second)
    assert first.run.seed == second.run.seed == 5
    assert [found.name for _, found in first.cases()] == names
