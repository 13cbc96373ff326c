"""A run that was killed is brought to its end; what it had finished is not run again."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    agenteval,
    case,
    environment,
    eventually,
    python_agent,
    results_in,
    said,
    write_suite,
)

from agenteval.results.model import Results
from agenteval.results.store import read_results

CASES, ITERATIONS = 30, 3

# Slow enough to be killed in between; wrong in every fifth case, and in one without an answer.
AGENT = """
import time
def reply(request):
    with open("asked.log", "a") as log:
        log.write(request["case"] + "\\n")
    time.sleep(0.005)
    number = int(request["case"])
    if number == 7:
        raise RuntimeError("no model")
    return "wrong" if number % 5 == 0 else {"response": request["input"], "usage": {"input_tokens": number}}
"""


def project(directory: Path, code: str = AGENT, **agent: Any) -> None:
    directory.mkdir(exist_ok=True)
    cases = [case(str(number), f"text {number}", f"text {number}") for number in range(CASES)]
    write_suite(directory, cases, agent=python_agent(directory, code, **agent))


def options(out: str = "agenteval-report", seed: int = 7) -> list[str]:
    return ["run", "--iterations", str(ITERATIONS), "--concurrency", "4", "--seed", str(seed), "--out", out]


def kill_at(directory: Path, size: int, *arguments: str) -> int | None:
    """Start a run, and kill it with all its grace once its journal has grown by so many bytes; its exit status."""
    journal = directory / "agenteval-report" / "journal.jsonl"
    before = journal.stat().st_size if journal.exists() else 0
    command = [str(AGENTEVAL), *options(), *arguments]
    deadline = time.monotonic() + PATIENCE_S
    with subprocess.Popen(
        command, cwd=directory, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.stat().st_size >= before + size:
                process.kill()
            time.sleep(0.001)
        process.kill()
    # Its agents end when they find their input closed, perhaps after one more reply.
    assert eventually(lambda: not is_used(directory))
    return process.returncode


def is_used(directory: Path) -> bool:
    """Whether a process runs in a directory; where there is no /proc, none is known."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == directory.resolve():
                return True
    return False


def run_of(results: Results) -> tuple[Any, ...]:
    return said(results)["suites"], said(results)["summary"], results.run.seed, results.run.complete


@pytest.mark.long
@pytest.mark.parametrize("chance", range(2))
def test_a_run_killed_at_random_moments_ends_like_one_that_was_not(tmp_path: Path, chance: int) -> None:
    project(tmp_path)
    assert agenteval(*options("undisturbed"), cwd=tmp_path).status == 1
    (tmp_path / "asked.log").unlink()
    whole = (tmp_path / "undisturbed" / "journal.jsonl").stat().st_size
    draw = random.Random(chance)
    journal = tmp_path / "agenteval-report" / "journal.jsonl"
    resuming: tuple[str, ...] = ()
    for _ in range(5):
        assert kill_at(tmp_path, draw.randrange(whole // 3), *resuming) in {-9, 1}
        # A machine that goes down takes the end of the file with it, somewhere in a line.
        if journal.exists() and draw.random() < 0.5:
            content = journal.read_bytes()
            head = content.index(b"\n") + 1 if b"\n" in content else len(content)
            journal.write_bytes(content[: max(head, len(content) - draw.randrange(2000))])
        resuming = ("--resume",) if journal.exists() and b"\n" in journal.read_bytes() else ()
    ended = agenteval(*options(), "--resume", cwd=tmp_path)
    assert (ended.status, "Traceback" in ended.text) == (1, False), ended.text
    assert run_of(results_in(tmp_path)) == run_of(read_results(tmp_path / "undisturbed"))


def test_what_had_finished_is_not_asked_again(tmp_path: Path) -> None:
    project(tmp_path)
    assert kill_at(tmp_path, 10_000) == -9
    journal = tmp_path / "agenteval-report" / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").split("\n")[:-1]]
    done = {(line["of"], line["iteration"]["index"]) for line in lines if "iteration" in line}
    assert done
    run_id = lines[0]["run"]
    (tmp_path / "asked.log").unlink()
    ended = agenteval(*options(), "--resume", cwd=tmp_path)
    total = CASES * ITERATIONS
    assert f"resuming: {len(done)} of {total} iterations are taken from agenteval-report/journal.jsonl" in ended.err
    asked = Counter((tmp_path / "asked.log").read_text(encoding="utf-8").split("\n")[:-1])
    assert asked == Counter(
        str(number)
        for number in range(CASES)
        for index in range(ITERATIONS)
        if (f"agent.yaml::{number}", index) not in done
    )
    assert results_in(tmp_path).run.id == run_id


# What is refused


# What models cost
