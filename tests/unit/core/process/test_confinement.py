"""The start of user code, and its environment variables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agenteval.core.confine import Apart, Confinement, confined, confinement, launch, user_environment
from agenteval.core.files import Owner


def test_without_rules_a_program_starts_as_it_is() -> None:
    started = launch(("/bin/echo", "a b"), {"LD_PRELOAD": "theirs"}, "/")

    assert (started.argv, dict(started.environment)) == (("/bin/echo", "a b"), {"LD_PRELOAD": "theirs"})


def test_rules_hold_for_the_block_and_add_up() -> None:
    with confined(memory_mb=100), confined(cpu_s=3):
        assert confinement() == Confinement(memory_mb=100, cpu_s=3)

    assert confinement() == Confinement()


def test_an_owner_gets_no_rights_and_no_group() -> None:
    with confined(owner=Owner(4321, 4322)):
        started = launch(("/bin/echo", "a"), {}, "/")
    assert started.argv[0].endswith("/setpriv")
    assert started.argv[-3:] == ("--", "/bin/echo", "a")
    assert {"--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--clear-groups"} <= set(started.argv)


def test_a_directory_that_is_set_apart_has_another_user_and_other_variables(tmp_path: Path) -> None:
    apart = Apart(tmp_path / "apart", Owner(5321, 5321), {"HOME": "/apart"})
    link = tmp_path / "link"
    link.symlink_to(apart.directory)
    places = {
        apart.directory: 5321,
        apart.directory / "deeper": 5321,
        tmp_path: 4321,
        # A link is the agent's, and so is what leads out.
        link: 4321,
        link / "deeper": 4321,
        apart.directory / ".." / "elsewhere": 4321,
    }
    with confined(owner=Owner(4321, 4322), apart=apart):
        for directory, uid in places.items():
            started = launch(("/bin/echo", "a"), {"HOME": "/agent", "LANG": "C"}, directory)
            assert started.argv[started.argv.index("--reuid") + 1] == str(uid), directory
            home = "/apart" if uid == 5321 else "/agent"
            assert dict(started.environment) == {"HOME": home, "LANG": "C"}


def test_variables_that_load_code_are_set_after_the_rights_are_dropped() -> None:
    with confined(owner=Owner(4321, 4322)):
        started = launch(("/bin/echo", "a"), {"LD_PRELOAD": "/evil.so", "GCONV_PATH": "/evil", "HOME": "/home"}, "/")

    assert dict(started.environment) == {"HOME": "/home"}
    end_of_options = started.argv.index("--")
    assert {"LD_PRELOAD=/evil.so", "GCONV_PATH=/evil"} <= set(started.argv[end_of_options:])


def test_limits_hold_for_the_program_alone() -> None:
    script = "ulimit -d; ulimit -St; ulimit -Ht"
    with confined(memory_mb=512, cpu_s=7):
        started = launch(("/bin/sh", "-c", script), dict(os.environ), "/")

    done = subprocess.run(started.argv, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["500000", "7", "8"]


VARIABLES = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "http_proxy": "http://p:1",
    "OPENAI_API_KEY": "1",
    "OPENAI_ORG": "2",
    "SHOP": "3",
}


def test_in_ci_only_listed_variables_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_environment(environment=VARIABLES) == VARIABLES
    monkeypatch.setenv("CI", "true")
    always = {name: VARIABLES[name] for name in ("PATH", "LC_ALL", "http_proxy")}
    assert user_environment(environment=VARIABLES) == always
    with confined(pass_env=("OPENAI_*",)):
        assert user_environment(environment=VARIABLES) == {**always, "OPENAI_API_KEY": "1", "OPENAI_ORG": "2"}


@pytest.mark.parametrize(
    "name", ["INPUT_GITHUB-TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_TOKEN", "STATE_check", "GITHUB_OUTPUT"]
)
def test_variables_of_the_runner_never_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with confined(pass_env=("*",)):
        assert user_environment(environment={name: "value"}) == {}
