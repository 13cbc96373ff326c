"""A file that knows the line of every value, its source text, and which secrets it holds.

``${VAR}`` and ``${VAR:-default}`` are replaced in parsed scalar values only: a value from the
environment stays one text and can never change the structure of a file. As in a shell, the default
also stands in for an empty variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agenteval.errors import ConfigError, Problem

KeyPath = Sequence[str | int]

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Positions(Protocol):
    """Where the values of a parsed file stand in its text."""

    def line(self, path: KeyPath) -> int | None:
        """The 1-based line of a key, or of the nearest parent that exists."""
        ...

    def source_text(self, path: KeyPath) -> str | None:
        """How a scalar is written in the file; ``None`` for anything else."""
        ...


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        file: the path as the user knows it, for messages.
        directory: where relative paths in the file start.
        data: plain Python values, variables replaced.
        secrets: values of secret-looking environment variables that were used.
        warnings: what is suspicious but no error.
        positions: where the values stand.
    """

    file: str
    directory: Path
    data: Any
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()
    positions: Positions | None = field(default=None, repr=False)

    def line(self, path: KeyPath) -> int | None:
        """The 1-based line of a key, or of the nearest parent that exists."""
        return self.positions.line(path) if self.positions is not None else None

    def source_text(self, path: KeyPath) -> str | None:
        """How a scalar is written in the file (``60.940`` stays ``60.940``); ``None`` for anything else."""
        return self.positions.source_text(path) if self.positions is not None else None

    def as_written(self, value: Any, path: KeyPath) -> Any:
        """A value at a path, with its numbers and booleans as the text that is written for them."""
        if isinstance(value, list):
            return [self.as_written(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.as_written(item, (*path, key)) for key, item in value.items()}
        text = None if value is None else self.source_text(path)
        return value if text is None else text

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at a key of this document."""
        return Problem(message, file=self.file, line=self.line(path), path=dotted(path))


def dotted(path: KeyPath) -> str:
    """``("test_cases", 0, "input")`` as ``test_cases[0].input``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def read_text(path: Path, name: str) -> str:
    """The file as text.

    Raises:
        ConfigError: missing, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(Problem("no such file", file=name)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"not UTF-8 text (byte {error.start})", file=name)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=name)) from None


def looks_secret(variable: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret."""
    return _SECRET_NAME.search(variable) is not None


class Variables:
    """Replaces variables in the texts of one file, and remembers what was missing and what was secret.

    Args:
        file: the file's name, for messages.
        environment: where variables are looked up.
        pattern: how a variable is written: its name is the first group, its default the second.
    """

    def __init__(self, file: str, environment: Mapping[str, str], pattern: re.Pattern[str] = VARIABLE) -> None:
        self._file = file
        self._environment = environment
        self._pattern = pattern
        self.problems: list[Problem] = []
        self.secrets: set[str] = set()

    def replace(self, text: str, line: int | None) -> str:
        """The text with its variables replaced; those that cannot be are left, and become problems."""

        def value(match: re.Match[str]) -> str:
            variable, default = match.group(1), match.group(2)
            found = self._environment.get(variable)
            if not found and default is not None:
                return default
            if found is None:
                problem = f"is not set; set it, or write ${{{variable}:-default}}"
            elif _SURROGATE.search(found):
                problem = "is not UTF-8 text"
            else:
                problem = ""
            if found is None or problem:
                message = f"environment variable {variable} {problem}"
                self.problems.append(Problem(message, file=self._file, line=line))
                return match.group()
            if found and looks_secret(variable):
                self.secrets.add(found)
            return found

        return self._pattern.sub(value, text)
