"""The commands of ``setup``: run, shown, and told when they fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import ends, number_in

from agenteval.core.confine import confined
from agenteval.core.redact import Redactor
from agenteval.run.setup import SetupError, provisioned

AS_IT_IS = Redactor(())


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where new virtual environments are made."""
    folder = tmp_path_factory.mktemp("places")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Instead of a virtual environment an empty directory, which is there at once."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "python3"
    program.write_text('#!/bin/sh\nmkdir -p "$3/bin"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def failure(commands: str, directory: Path) -> str:
    with pytest.raises(SetupError) as caught, provisioned(commands, directory, AS_IT_IS):
        pass
    return str(caught.value)


@pytest.mark.long
def test_commands_run_in_their_directory_with_a_virtual_environment(tmp_path: Path) -> None:
    commands = "pwd > where\npython -c 'import sys; print(sys.prefix)' > prefix\ncommand -v pip > pip"

    with provisioned(commands, tmp_path, AS_IT_IS) as variables:
        venv = variables["VIRTUAL_ENV"]
        assert (tmp_path / "where").read_text(encoding="utf-8").strip() == str(tmp_path.resolve())
        assert (tmp_path / "prefix").read_text(encoding="utf-8").strip() == venv
        assert (tmp_path / "pip").read_text(encoding="utf-8").strip() == f"{venv}/bin/pip"
        assert variables["PATH"].split(os.pathsep)[0] == f"{venv}/bin"
        assert not Path(sys.prefix).samefile(venv)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ("exit 7", "exit status 7"),
        ("echo $UNSET_VARIABLE", "UNSET_VARIABLE: unbound variable"),
        ("false | true", "line 1, `false | true`, ended with exit status 1"),
        ("f() {\n  false\n}\nf", "exit status 1"),
        ("if then", "syntax error"),
        ("kill -KILL $$", "was killed by SIGKILL"),
    ],
)
def test_whatever_goes_wrong_is_told(tmp_path: Path, commands: str, told: str) -> None:
    assert told in failure(commands, tmp_path)


@pytest.mark.usefixtures("quick")
def test_output_is_shown_without_secrets_and_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with provisioned(r"printf 'key hush\n'; printf 'a\033[31mb\rc' >&2", tmp_path, Redactor(["hush"])):
        shown = capsys.readouterr().out

    assert "key ***\n" in shown
    assert "hush" not in shown
    assert "\033" not in shown
    assert "\r" not in shown


@pytest.mark.long
@pytest.mark.usefixtures("quick")
def test_a_line_without_end_and_an_endless_log_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with provisioned("head -c 9000000 /dev/zero | tr '\\0' x; seq 1 2000000", tmp_path, AS_IT_IS):
        shown = capsys.readouterr().out

    assert len(shown) < 5 * 10**6
    assert max(map(len, shown.splitlines())) <= 4000
    assert "further output of setup is not shown" in shown


@pytest.mark.usefixtures("quick")
def test_nothing_is_left_in_the_background(tmp_path: Path) -> None:
    with provisioned("sleep 600 & echo $! > pid", tmp_path, AS_IT_IS):
        pid = number_in(tmp_path / "pid")
        assert ends(pid)


@pytest.mark.usefixtures("quick")
def test_secrets_reach_it_as_far_as_they_reach_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("INDEX_TOKEN", "wanted")
    monkeypatch.setenv("OTHER_TOKEN", "unwanted")
    monkeypatch.setenv("INPUT_GITHUB-TOKEN", "the workflow's")

    with confined(pass_env=("INDEX_*",)), provisioned("env > seen", tmp_path, AS_IT_IS):
        seen = (tmp_path / "seen").read_text(encoding="utf-8")

    assert "INDEX_TOKEN=wanted" in seen
    assert "unwanted" not in seen
    assert "workflow" not in seen


@pytest.mark.usefixtures("quick")
def test_it_takes_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.run.setup.TIME_LIMIT_S", 3.0)

    message = failure("echo $$ > pid; sleep 600", tmp_path)

    assert "longer than 0.05 minutes" in message
    pid = number_in(tmp_path / "pid")
    assert ends(pid)
