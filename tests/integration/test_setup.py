"""The commands of ``setup``: run, shown, and told when they fail."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import agent_spec, answer, ends, number_in

from agenteval.core.confine import Confinement, confined, confinement, user_environment
from agenteval.core.redact import Redactor
from agenteval.run.resolve.configurations import read_config
from agenteval.run.setup import Setup, SetupError, provisioned, users_code

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


def test_without_commands_nothing_is_made(tmp_path: Path, places: Path) -> None:
    with provisioned(" \n", tmp_path, AS_IT_IS) as variables:
        assert variables == {}
        assert list(places.iterdir()) == []


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


@pytest.mark.long
def test_python_agents_use_what_was_installed(tmp_path: Path) -> None:
    commands = """
        site=$(python -c 'import site; print(site.getsitepackages()[0])')
        echo 'answer = "installed"' > "$site/newly_installed.py"
    """
    (tmp_path / "agent.py").write_text(
        "import newly_installed\n\ndef reply(request):\n    return newly_installed.answer\n", encoding="utf-8"
    )

    with provisioned(commands, tmp_path, AS_IT_IS) as variables, confined(variables=variables):
        reply = answer(agent_spec("python", "agent:reply", tmp_path))

    assert reply.response == "installed"


@pytest.mark.usefixtures("quick")
def test_the_failing_line_and_its_last_words_are_told(tmp_path: Path) -> None:
    message = failure("echo fine\n\nls /there/is/nothing\necho never", tmp_path)

    assert message.startswith("setup: line 3, `ls /there/is/nothing`, ended with exit status 2:")
    assert "No such file" in message.splitlines()[-1]
    assert "never" not in message


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
def test_what_may_fail_does_not_end_it(tmp_path: Path) -> None:
    with provisioned("false || true\nif false; then exit 9; fi", tmp_path, AS_IT_IS) as variables:
        assert variables


@pytest.mark.usefixtures("quick")
def test_only_the_end_of_much_output_is_told(tmp_path: Path) -> None:
    message = failure("seq 1 5000\nfalse", tmp_path)

    assert message.splitlines()[1:] == [str(number) for number in range(4986, 5001)]


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


@pytest.mark.usefixtures("quick")
def test_secrets_are_masked_in_what_failed(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught, provisioned("echo hush >&2; false", tmp_path, Redactor(["hush"])):
        pass

    assert "***" in str(caught.value).splitlines()


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
def test_limits_of_agents_do_not_hold(tmp_path: Path) -> None:
    with (
        confined(memory_mb=16, cpu_s=1),
        provisioned("ulimit -d > data", tmp_path, AS_IT_IS),
    ):
        assert (tmp_path / "data").read_text(encoding="utf-8").strip() == "unlimited"


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


@pytest.mark.usefixtures("quick")
def test_a_signal_ends_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught, provisioned(f"kill -TERM {os.getpid()}; sleep 600", tmp_path, AS_IT_IS):
        pass

    assert caught.value.code == 128 + signal.SIGTERM


def test_without_python_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert user_environment()["PATH"] == str(tmp_path)
    assert failure("true", tmp_path) == "setup: python3 is not on PATH"


def test_the_configuration_says_what_users_code_gets(tmp_path: Path) -> None:
    file = tmp_path / "agenteval.yaml"
    file.write_text("pass_env: [A_*]\nlimits: {memory_mb: 500, cpu_s: 9}\n", encoding="utf-8")

    with users_code(Setup(rules=read_config(file).user_code), AS_IT_IS):
        assert confinement() == Confinement(pass_env=("A_*",), memory_mb=500, cpu_s=9)
    with users_code(Setup(rules=read_config(None).user_code), AS_IT_IS):
        assert confinement() == Confinement(pass_env=())
