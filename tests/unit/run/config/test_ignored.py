"""Which files a pull request may declare to change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.files import with_base_commit
from agenteval.run.config import DEFAULT_IGNORED
from agenteval.run.config_file import read_config_file


@dataclass(frozen=True)
class Base:
    """The configuration of the base commit; ``None`` if it has none."""

    text: str | None

    def read(self, path: Path) -> str:
        if self.text is None:
            raise AgentEvalError(f"{path.name} does not exist there")
        return self.text


def ignored(tmp_path: Path, text: str) -> tuple[str, ...]:
    path = tmp_path / "agenteval.yaml"
    path.write_text(text, encoding="utf-8")
    return read_config_file(path).ignore


def test_the_configuration_replaces_the_defaults(tmp_path: Path) -> None:
    assert ignored(tmp_path, "{}") == DEFAULT_IGNORED
    assert ignored(tmp_path, "gate: {ignore: [docs/**, '*.md']}") == ("docs/**", "*.md")
    assert ignored(tmp_path, "gate: {ignore: []}") == ()


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("gate: {ignore: ['*.md', docs/**]}", ("docs/**",)),
        ("gate: {ignore: [docs]}", ()),
        ("gate: {tolerance: 0.1}", ("LICENSE",)),
        ("gate: nothing", ("LICENSE",)),
        ("- a list", ("LICENSE",)),
        ("{", ("LICENSE",)),
        ("", ("LICENSE",)),
        (None, ("LICENSE",)),
    ],
)
def test_in_a_pull_request_the_base_commit_must_agree(tmp_path: Path, base: str | None, expected: object) -> None:
    with with_base_commit(Base(base)):
        assert ignored(tmp_path, "gate: {ignore: [docs/**, '*.py', LICENSE]}") == expected


@pytest.mark.parametrize("pattern", ["", " ", "/docs/**", "../x", "a/../b", '"a\\0b"'])
def test_unusable_patterns_are_refused(tmp_path: Path, pattern: str) -> None:
    text = pattern if pattern.startswith('"') else f"{pattern!r}"
    with pytest.raises(ConfigError, match=r"agenteval\.yaml:1: .*pattern"):
        ignored(tmp_path, f"gate: {{ignore: [{text}]}}")
