"""A run that is interrupted still writes every report, and leaves no process behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    agenteval,
    case,
    ends,
    environment,
    eventually,
    number_in,
    python_agent,
    results_in,
    statuses,
    verdict_of,
    write_suite,
)

from agenteval.results.model import Results

REPORTS = ("results.json", "junit.xml", "summary.md", "comment.md", "journal.jsonl")

# Case "quick" is answered; every other one starts a child, says so, and hangs.
HANG = """
import json, os, subprocess, sys, time

def reply(request):
    if request["case"].startswith("quick"):
        return request["input"]
    child = subprocess.Popen(["sleep", "1000"])
    with open(f"{request['case']}.child", "w") as file:
        file.write(f"{child.pid}\\n")
    with open(f"{request['case']}.own", "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)

async def areply(request):
    import asyncio
    if request["case"].startswith("quick"):
        return request["input"]
    with open(f"{request['case']}.own", "w") as file:
        file.write(f"{os.getpid()}\\n")
    await asyncio.sleep(1000)

if __name__ == "__main__":
    print(reply(json.load(sys.stdin)))
"""


def agents(directory: Path, kind: str) -> dict[str, Any]:
    agent = python_agent(directory, HANG)
    if kind == "command":
        return {"command": [sys.executable, "agent.py"]}
    return agent if kind == "python" else {**agent, "python": "agent:areply"}


@contextmanager
def running(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The installed command, while it runs."""
    with subprocess.Popen(
        [str(AGENTEVAL), "run", *arguments],
        cwd=directory,
        env=environment(PYTHONWARNINGS="always"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_reports(directory: Path) -> Results:
    """Every report is there and valid."""
    folder = directory / "agenteval-report"
    assert sorted(path.name for path in folder.iterdir() if path.name in REPORTS) == sorted(REPORTS)
    for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)
    ElementTree.fromstring((folder / "junit.xml").read_text(encoding="utf-8"))
    assert "interrupted" in (folder / "summary.md").read_text(encoding="utf-8")
    assert "interrupted" in (folder / "comment.md").read_text(encoding="utf-8")
    return results_in(directory)


@pytest.mark.parametrize(
    ("kind", "number"), [("command", signal.SIGINT), ("python", signal.SIGTERM), ("python-async", signal.SIGHUP)]
)
def test_reports_hold_what_had_finished(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    cases = [case("quick 1"), case("hang-1"), case("quick 2", "other"), case("hang-2")]
    write_suite(tmp_path, cases, agent=agents(tmp_path, kind))
    journal = tmp_path / "agenteval-report" / "journal.jsonl"
    with running(tmp_path, "--concurrency", "4") as process:
        pids = [number_in(tmp_path / f"hang-{index}.own") for index in (1, 2)]
        if kind != "python-async":
            pids += [number_in(tmp_path / f"hang-{index}.child") for index in (1, 2)]
        assert eventually(lambda: len(journal.read_text(encoding="utf-8").splitlines()) == 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, err
    # Nothing but what is meant for people: no traceback, no warning about what was left open.
    assert err.splitlines() == ["running 4 cases"]
    assert verdict_of(out) == "error: interrupted: 2 of 4 cases had finished"
    results = read_reports(tmp_path)
    assert results.run.complete is False
    assert statuses(results) == {"quick 1": "passed", "quick 2": "failed"}
    assert (results.summary.cases, results.summary.passed, results.summary.failed) == (2, 1, 1)
    for pid in pids:
        assert ends(pid)


# Starts only if it may, and hangs in case "hang" of a first run.
STARTING = """
import os, time

def wait(name):
    with open(name, "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)

if os.path.exists("wait"):
    wait("starting")

def reply(request):
    if request["case"] == "hang" and os.path.exists("hang"):
        wait("hanging")
    return request["input"]
"""


def ended_at(directory: Path, place: str, *arguments: str) -> str:
    """End a run when the agent gets to a place; return what was printed."""
    (directory / place).unlink(missing_ok=True)
    with running(directory, "--concurrency", "1", *arguments) as process:
        pid = number_in(directory / place)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert ends(pid)
    return verdict_of(out)


def test_while_the_agent_is_starting(tmp_path: Path) -> None:
    """Reports and journal are of this run: ``--resume`` must not continue the one before it, which was complete."""
    write_suite(tmp_path, [case("a"), case("b")], agent=python_agent(tmp_path, STARTING))
    assert agenteval("run", cwd=tmp_path).status == 0
    before = results_in(tmp_path).run.id
    (tmp_path / "wait").touch()
    assert ended_at(tmp_path, "starting") == "error: interrupted: 0 of 2 cases had finished"
    now = read_reports(tmp_path).run.id
    assert now != before
    journal = tmp_path / "agenteval-report" / "journal.jsonl"
    assert [json.loads(line)["run"] for line in journal.read_text(encoding="utf-8").splitlines()] == [now]
    (tmp_path / "wait").unlink()
    resumed = agenteval("run", "--resume", cwd=tmp_path)
    assert resumed.status == 0, resumed.text
    assert "resuming" in resumed.err
    assert (results_in(tmp_path).run.id, results_in(tmp_path).summary.passed) == (now, 2)


def test_pressing_twice_still_writes_the_reports(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("quick"), case("hang")], agent=agents(tmp_path, "command"))
    journal = tmp_path / "agenteval-report" / "journal.jsonl"
    with running(tmp_path) as process:
        number_in(tmp_path / "hang.own")
        assert eventually(lambda: len(journal.read_text(encoding="utf-8").splitlines()) == 2)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {130, 143}, err
    assert statuses(read_reports(tmp_path)) == {"quick": "passed"}
    # The case that did not run has no result, so it cannot be selected.
    refused = agenteval("run", "--failed", cwd=tmp_path)
    assert refused.status == 2
    assert "the run was interrupted before 1 of its cases had finished" in " ".join(refused.err.split())


def test_a_caller_that_ignores_the_end_of_its_children_does_not_hide_that_of_an_agent(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("a")], agent={"command": ["echo", "hello"]})
    start = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", start, str(AGENTEVAL), "run"], cwd=tmp_path, env=environment(), check=False
    )
    assert ended.returncode == 0
