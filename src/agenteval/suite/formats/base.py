"""The definition of a suite format: the places, detection and loading of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.core.documents.document import Document
    from agenteval.core.errors import Problem
    from agenteval.suite.holodeck_project import HolodeckProject
    from agenteval.suite.model import Suite


@dataclass(frozen=True, slots=True)
class Source:
    """A suite file.

    Attributes:
        path: the file on this machine.
        name: its name in messages and results: relative to the repository, with forward slashes.
    """

    path: Path
    name: str

    def text(self) -> str:
        """Read the file.

        Raises:
            ConfigError: missing, unreadable, too large or not UTF-8.
        """
        from agenteval.core.documents.document import read_text

        return read_text(self.path, self.name)

    def yaml(self, credentials: Iterable[str] = ()) -> Document:
        """Parse the file as YAML: ``data``, with ``${VARIABLE}`` replaced, and the line of every key.

        Args:
            credentials: patterns of the keys where secret-like variables are replaced, like ``model.api_key`` or
                ``tools.*.env.*``; elsewhere ``allow_env`` of ``agenteval.yaml`` must list them.

        Raises:
            ConfigError: unreadable, not YAML, or a variable is not set or not allowed.
        """
        from agenteval.core.documents.yaml.read import read_yaml

        return read_yaml(self.path, shown_as=self.name, credentials=credentials)

    def toml(self, credentials: Iterable[str] = ()) -> Document:
        """Parse the file as TOML, as ``yaml`` does.

        Raises:
            ConfigError: unreadable, not TOML, or a variable is not set or not allowed.
        """
        from agenteval.core.documents.toml.read import read_toml

        return read_toml(self.path, shown_as=self.name, credentials=credentials)

    def problem(self, message: str, line: int | None = None, key: str = "") -> Problem:
        """Describe a problem of the file, to be raised in a ``ConfigError``."""
        from agenteval.core.errors import Kind, Problem

        return Problem(message, file=self.name, line=line, path=key, kind=Kind.VALUE)


@dataclass(frozen=True)
class Format:
    """A suite format.

    Attributes:
        name: its name in commands and results.
        title: a short description of its files.
        patterns: conventional places of its files: globs relative to a project's directory.
        matches: returns whether a file has this format; it must not raise.
        load: converts a file to a suite; raises ``ConfigError`` with every problem of the file.
        schema: makes the JSON Schema of its files, for ``agenteval schema``.
        starter: a directory with the files that ``agenteval init`` writes.
        places: returns the patterns if the environment can change them.
        project: reads the agent of a file, for HoloDeck to run; of HoloDeck's format only.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    matches: Callable[[Source], bool]
    load: Callable[[Source], Suite]
    schema: Callable[[], dict[str, Any]] | None = None
    starter: Path | None = None
    project: Callable[[Source], HolodeckProject] | None = None
    places: Callable[[], tuple[str, ...]] | None = None

    @property
    def searched(self) -> tuple[str, ...]:
        """Where its files are searched for."""
        return self.patterns if self.places is None else self.places()
