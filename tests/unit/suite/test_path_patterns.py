"""Paths with wildcards: what they match, and what they leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.suite.formats.registry import is_pattern, matching_paths

FILES = (
    "agent.yaml",
    "agents/a/agent.yaml",
    "agents/b/agent.yaml",
    "agents/b/deep/agent.yaml",
    "agents/b/.agentci/evals/one.toml",
    "agents/README.md",
    "agents/.venv/x/agent.yaml",
    "agents/node_modules/x/agent.yaml",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("agents/*/agent.yaml", ["agents/a/agent.yaml", "agents/b/agent.yaml"]),
        ("agents/[b-z]/agent.yaml", ["agents/b/agent.yaml"]),
        ("a*.yaml", ["agent.yaml"]),
        ("./agents/?/agent.yaml", ["agents/a/agent.yaml", "agents/b/agent.yaml"]),
        ("agents/*", ["agents/README.md", "agents/a", "agents/b"]),
        (
            "**/agent.yaml",
            ["agent.yaml", "agents/a/agent.yaml", "agents/b/agent.yaml", "agents/b/deep/agent.yaml"],
        ),
        ("agents/**", ["agents", "agents/a", "agents/b", "agents/b/deep"]),
        ("agents/*/.agentci/evals/*", ["agents/b/.agentci/evals/one.toml"]),
        ("agents/.venv/*/agent.yaml", ["agents/.venv/x/agent.yaml"]),
        ("agents/node_modules/**/agent.yaml", ["agents/node_modules/x/agent.yaml"]),
        ("nothing/*", []),
        ("agents/*/nothing", []),
    ],
)
def test_what_a_pattern_matches(pattern: str, found: list[str], here: Path) -> None:
    assert is_pattern(Path(pattern))
    assert [path.as_posix() for path in matching_paths(Path(pattern))] == found
    assert matching_paths(here / pattern) == [here / name for name in found]


def test_links_in_a_circle_end(here: Path) -> None:
    for name in ("one", "two", "three"):
        (here / "agents" / "a" / name).symlink_to(here / "agents")

    assert [path.as_posix() for path in matching_paths(Path("agents/a/**"))] == ["agents/a"]


def test_a_path_without_a_wildcard_is_no_pattern() -> None:
    assert not is_pattern(Path("agents/a/agent.yaml"))
