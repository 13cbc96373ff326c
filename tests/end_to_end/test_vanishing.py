"""Places that go away, or take nothing, while a run is under way: one message, and the exit status of the machine."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.mistakes import shown
from tests.support import (
    AGENTEVAL,
    Ended,
    agenteval,
    case,
    environment,
    eventually,
    python_agent,
    results_in,
    write_suite,
)

REMOVES = "import shutil\ndef reply(request):\n    shutil.rmtree({place!r}, ignore_errors=True)\n    return 'hello'\n"


def run(directory: Path, place: Path, *options: str) -> Ended:
    """A run whose agent removes a place."""
    directory.mkdir(exist_ok=True)
    cases = [case(str(number), "hello", "hello") for number in range(3)]
    write_suite(directory, cases, agent=python_agent(directory, REMOVES.format(place=str(place))))
    return agenteval("run", "--concurrency", "1", *options, cwd=directory)


def assert_told(ended: Ended, message: str) -> None:
    assert ended.status == 3, ended.text
    assert [mistake.title for mistake in shown(ended.err)] == [message]
    assert "Traceback" not in ended.text


def test_the_working_directory_vanishes(tmp_path: Path) -> None:
    ended = run(tmp_path / "work", tmp_path / "work")
    assert_told(ended, "the working directory is gone: something removed it")


def test_the_report_directory_vanishes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = run(tmp_path / "work", out, "--out", str(out))
    assert_told(ended, f"cannot write {out}/results.json: No such file or directory")


@pytest.mark.parametrize("room", [6_000, 12_000])
def test_results_are_there_whole_or_not_at_all(tmp_path: Path, room: int) -> None:
    # The journal and results.json of these cases have room, what follows has not; or results.json has none either.
    write_suite(tmp_path, [case("a" * 500, "hello", "hello")], agent={"command": ["cat"]})
    done = subprocess.run(
        [str(AGENTEVAL), "run"],
        cwd=tmp_path,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "error: cannot write agenteval-report/" in done.stderr
    written = {path.name for path in (tmp_path / "agenteval-report").iterdir()}
    assert not {name for name in written if name.endswith(".tmp")}
    if "results.json" in written:
        assert results_in(tmp_path).summary.cases == 1


def test_two_runs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo right"
    agent = {"agents": {"default": {"command": ["/bin/sh", "-c", wait]}}}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(agent), encoding="utf-8")
    write_suite(tmp_path, [case("a", ground_truth="right")])
    command = [str(AGENTEVAL), "run", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as first:
        assert eventually((tmp_path / "started").exists)

        second = agenteval("run", "--out", "out", cwd=tmp_path, env=environment())

        (tmp_path / "go").touch()
        assert first.wait() == 0
    assert second.status == 3, second.text
    assert f"(process {first.pid}, since " in second.err
    assert agenteval("run", "--out", "out", cwd=tmp_path, env=environment()).status == 0
