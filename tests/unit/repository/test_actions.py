"""Every workflow, example and document uses the listed commit of an action."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import actions
from scripts.actions import Pin, files, pinned, pins, used
from tests.support import ROOT

CHECKOUT = {"actions/checkout": Pin("v9.8.7", "0" * 40)}


def test_every_action_has_the_listed_commit_and_version() -> None:
    # A difference is mended by `make actions`.
    stale = [file for file in files() if pinned(text := file.read_text(encoding="utf-8"), pins()) != text]

    assert stale == []


def test_every_listed_action_is_used() -> None:
    assert used("".join(file.read_text(encoding="utf-8") for file in files())) == pins().keys()


def test_all_places_are_searched() -> None:
    found = {file.relative_to(ROOT).as_posix() for file in files()}

    assert found >= {".github/workflows/ci.yml", "README.md", "action.yml", "docs/metrics.md"}
    assert found >= {"examples/workflows/shards.yml", "src/agenteval/cli/starters/workflow.yml"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("uses: actions/checkout@v4", f"uses: actions/checkout@{'0' * 40} # v9.8.7"),
        (f"- uses: actions/checkout@{'1' * 40} # v6.0.2\n", f"- uses: actions/checkout@{'0' * 40} # v9.8.7\n"),
        ("uses: actions/checkout@main  # not yet\n", f"uses: actions/checkout@{'0' * 40} # v9.8.7\n"),
        ("uses: actions/checkout/sub@v4", f"uses: actions/checkout/sub@{'0' * 40} # v9.8.7"),
        ("uses: org/agenteval-action@v1", "uses: org/agenteval-action@v1"),
        ("uses: ./", "uses: ./"),
        ("causes: a/b@c", "causes: a/b@c"),
    ],
)
def test_an_action_gets_the_listed_commit_and_version(written: str, expected: str) -> None:
    assert pinned(written, CHECKOUT) == expected


def test_an_action_that_is_not_listed_is_named() -> None:
    with pytest.raises(ValueError, match=r"not in requirements/actions.yml: a/b, c/d; add"):
        pinned("uses: c/d@v1\nuses: a/b@v1\nuses: actions/checkout@v1", CHECKOUT)


@pytest.mark.parametrize(
    "line",
    [
        "    - uses: actions/checkout@v7",
        f"    - uses: actions/checkout@{'0' * 40}",
        f"    - uses: actions/checkout@{'0' * 40} # v7.0.1\n    - uses: actions/checkout@{'1' * 40} # v7.0.2",
    ],
)
def test_the_list_names_a_commit_and_a_version_once(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "actions.yml"
    file.write_text(f"runs:\n  steps:\n{line}\n", encoding="utf-8")
    monkeypatch.setattr(actions, "LIST", file)

    with pytest.raises(ValueError, match="for another action"):
        pins()
