"""Output that nobody reads: closed, broken and full streams change no exit status and end in no traceback."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    agenteval,
    case,
    copied_agenteval,
    environment,
    open_folder,
    write_suite,
)

from agenteval.cli.main import command_line

_STREAMS = (1, 2)
_AGENT = {"command": ["sh", "-c", "cat > /dev/null; echo hello"]}


@pytest.fixture(scope="module")
def runs() -> Iterator[Path]:
    """A folder with a run that passes in ``good`` and one that fails in ``bad``, as parts of a merge."""
    with open_folder() as folder:
        for name, expected in (("good", "hello"), ("bad", "bye")):
            (folder / name).mkdir()
            write_suite(folder / name, [case("one", "hello", expected)], agent=_AGENT)
            agenteval("run", "--out", "report", cwd=folder / name)
            assert (folder / name / "report" / "results.json").exists()
        (folder / "broken.yaml").write_text("evaluations: 3\n", encoding="utf-8")
        yield folder


#: Arguments, and the exit status with streams as usual.
_COMMANDS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "run": (("run", "good/agent.yaml"), 0),
    "run: fails": (("run", "bad/agent.yaml"), 1),
    "run: wrong suite": (("run", "broken.yaml"), 2),
    "run: wrong option": (("run", "--iterations", "no"), 2),
    "validate": (("validate", "good/agent.yaml"), 0),
    "validate: wrong suite": (("validate", "broken.yaml"), 2),
    "list": (("list", "good/agent.yaml"), 0),
    "probe": (("probe", "good/agent.yaml"), 0),
    "probe: wrong suite": (("probe", "broken.yaml"), 2),
    "compare": (("compare", "good/report", "good/report"), 0),
    "compare: fails": (("compare", "bad/report", "good/report"), 1),
    "accept": (("accept", "--reason", "why", "--from", "good/report"), 2),
    "report": (("report", "good/report", "--out", "again"), 0),
    "prove": (("prove", "good/report"), 2),
    "merge": (("merge", "good/report", "--output", "merged"), 0),
    "init": (("init", "started-{}"), 0),
    "schema": (("schema", "results"), 0),
    "plugins": (("plugins",), 0),
    "explain": (("explain", "proven"), 0),
    "open": (("open", "good/report"), 0),
    "demo": (("demo",), 0),
    "publish": (
        (
            "publish",
            "bad/report",
            "--dry-run",
            "--repository",
            "org/bot",
            "--pull-request",
            "7",
            "--commit",
            "a" * 40,
        ),
        0,
    ),
    "action": (("action",), 0),
    "action: fails": (("action",), 1),
    "--help": (("--help",), 0),
    "--version": (("--version",), 0),
}
# What could not be printed is all that these would give.
_PRINTING = ("list", "report", "schema", "plugins", "explain")


@contextmanager
def _closed(*streams: int) -> Iterator[dict[int, int | None]]:
    yield dict.fromkeys(streams)


@contextmanager
def _broken(*streams: int) -> Iterator[dict[int, int | None]]:
    """A pipe whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield dict.fromkeys(streams, writer)
    finally:
        os.close(writer)


@contextmanager
def _full(*streams: int) -> Iterator[dict[int, int | None]]:
    with Path("/dev/full").open("wb") as full:
        yield dict.fromkeys(streams, full.fileno())


_WHICH = {"stdout": (1,), "stderr": (2,), "both": _STREAMS}


def test_every_command_is_in_the_table() -> None:
    (subcommands,) = (
        action.choices for action in command_line()._actions if isinstance(action, argparse._SubParsersAction)
    )
    assert {name.partition(":")[0] for name in _COMMANDS} == {*subcommands, "--help", "--version"}


@pytest.mark.long
@pytest.mark.parametrize("which", _WHICH)
@pytest.mark.parametrize("state", [_closed, _broken, _full])
@pytest.mark.parametrize("name", _COMMANDS)
def test_the_exit_status_is_the_gates(name: str, state: Callable[..., object], which: str, runs: Path) -> None:
    arguments, status = _COMMANDS[name]
    place = f"{os.getpid()}-{state.__name__}-{which}"
    ended, texts = _ended(
        [argument.format(place) for argument in arguments], runs, _variables(name, runs), state, _WHICH[which]
    )
    lost = state is _full and 1 in _WHICH[which] and name in _PRINTING
    assert ended == (3 if lost else status), texts
    for text in texts:
        assert "Traceback" not in text
        assert "internal error" not in text
        assert "Exception ignored" not in text


def _variables(name: str, runs: Path) -> dict[str, str]:
    if not name.startswith("action"):
        # `open` shows a page only where a window can be, and `demo` leaves a directory.
        return environment(DISPLAY="", WAYLAND_DISPLAY="", BROWSER="", TMPDIR=str(runs))
    suite = "bad/agent.yaml" if name.endswith("fails") else "good/agent.yaml"
    return environment(GITHUB_WORKSPACE=str(runs), GITHUB_EVENT_NAME="push", INPUT_SUITE=suite)


def _ended(
    arguments: list[str],
    folder: Path,
    variables: dict[str, str],
    state: Callable[..., object],
    streams: tuple[int, ...],
) -> tuple[int, list[str]]:
    """Run the command with these streams in that state; return its status and what the other stream got."""
    with ExitStack() as stack:
        given: dict[int, int | None] = stack.enter_context(state(*streams))  # type: ignore[arg-type]

        def prepare() -> None:
            for stream, descriptor in given.items():
                if descriptor is None:
                    os.close(stream)
                else:
                    os.dup2(descriptor, stream)

        done = subprocess.run(
            [str(AGENTEVAL), *arguments],
            cwd=folder,
            env=variables,
            preexec_fn=prepare,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    return done.returncode, [done.stdout, done.stderr]


def test_a_reader_may_end_in_the_middle(runs: Path) -> None:
    with subprocess.Popen(
        [copied_agenteval(), "schema", "results"],
        cwd=runs,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE_S) == 0


def test_a_full_disk_is_told(runs: Path) -> None:
    for name in (*_PRINTING, "run", "run: fails"):
        arguments, status = _COMMANDS[name]
        ended, (_, told) = _ended([*arguments], runs, environment(), _full, (1,))
        assert (name, ended) == (name, 3 if name in _PRINTING else status)
        assert told.endswith("agenteval: warning: standard output is incomplete: No space left on device\n")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """A report that is opened as descriptor 1 would get the output of a child."""
    write_suite(tmp_path, [case("one")], agent=_AGENT)
    status, _ = _ended(["run"], tmp_path, environment(), _closed, (1, 2))
    assert status == 0
    for file in (tmp_path / "agenteval-report").iterdir():
        assert "running 1 case" not in file.read_text(encoding="utf-8")
    assert (tmp_path / "agenteval-report" / "results.json").read_bytes().startswith(b"{")
