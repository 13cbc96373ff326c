"""``gate: {ignore: …}`` of ``agenteval.yaml``: files that cannot change the verdict on a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from agenteval.core.base_commit import BaseCommit, base_commit
from agenteval.core.documents.yaml.read import parse_yaml
from agenteval.core.errors import AgentEvalError
from agenteval.core.paths import display_path

#: Few, because prompts and knowledge of agents are often in files like ``*.md`` or in ``docs``.
DEFAULT_IGNORED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")


def _pattern(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("a pattern of files must not be empty")
    if text.startswith("/") or ".." in text.split("/"):
        raise ValueError("a pattern starts at the root of the repository; write docs/** without / and ..")
    return text


IgnoredFiles = Annotated[str, AfterValidator(_pattern)]


class _Gate(BaseModel):
    model_config = ConfigDict(extra="ignore")

    ignore: list[IgnoredFiles] = list(DEFAULT_IGNORED)


class _Keys(BaseModel):
    """The list, in a file with other keys."""

    model_config = ConfigDict(extra="ignore")

    gate: _Gate = _Gate()


def ignored_files(listed: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the patterns that count: in a pull request only those of the base commit.

    Args:
        listed: the patterns of the configuration.
        path: its file.
    """
    commit = base_commit()
    if commit is None or set(listed) <= set(DEFAULT_IGNORED):
        return tuple(listed)
    agreed = _of_base(commit, path)
    return tuple(pattern for pattern in listed if pattern in agreed)


def _of_base(commit: BaseCommit, path: Path) -> Sequence[str]:
    """Return the patterns of the base commit; the defaults if it has no such file, or none that can be read."""
    try:
        document = parse_yaml(commit.read(path), display_path(path), path.parent, environment={}, unset=[])
        return _Keys.model_validate(document.data or {}).gate.ignore
    except (AgentEvalError, ValidationError):
        return DEFAULT_IGNORED
