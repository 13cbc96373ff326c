"""The table of options: it is small, and the command line says what it says."""

from __future__ import annotations

import re

import pytest

from agenteval.cli.main import main
from agenteval.run.config import DEFAULT_CONCURRENCY
from agenteval.run.config_file import PublishedConfig
from agenteval.run.options import BY_NAME, INPUTS, OPTIONS


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """The options that a help shows."""
    with pytest.raises(SystemExit):
        main(words)
    return set(re.findall(r"(?m)^  (?:-\w(?: \w+)?, )?(--[a-z-]+)", capsys.readouterr().out))


def test_there_are_few_options() -> None:
    assert len(OPTIONS) <= 60
    assert len(BY_NAME) == len(OPTIONS)
    assert len(INPUTS) <= 20


def test_the_help_is_short_and_the_whole_help_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = shown(capsys, "run", "--help"), shown(capsys, "run", "--help-all")
    assert len(short) <= 20
    assert short < whole
    assert whole == {"--help", "--help-all", *(option.flags[-1] for option in OPTIONS if option.flags)}
    # The first help did not change what the second one shows.
    assert shown(capsys, "run", "--help") == short


def test_a_small_command_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"--control", "--history", "--traces"} <= shown(capsys, "validate", "--help")


def test_every_key_is_one_of_the_configuration() -> None:
    for option in OPTIONS:
        section, _, name = option.key.partition(".")
        if section:
            field = PublishedConfig.model_fields[section]
            assert not name or name in (field.annotation.model_fields if field.annotation else {}), option.key


def test_the_help_tells_the_default_of_the_program() -> None:
    assert BY_NAME["concurrency"].help.endswith(f"default: {DEFAULT_CONCURRENCY}")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("--base", "did you mean '--baseline'?"),
        ("--judge", "write `judge:` in agenteval.yaml"),
        ("--setup", "it is an input of the action: setup"),
    ],
)
def test_an_option_that_is_elsewhere_says_what_to_write(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{name}=1"]) == 2
    assert f"unknown option {name!r}\n  = help: {hint}" in capsys.readouterr().err.replace("; ", "\n  = help: ", 1)
