"""A file that knows the line of every value, its source text, and which secrets it holds.

``${VAR}`` and ``${VAR:-default}`` are replaced in parsed scalar values only: a value from the
environment stays one text and can never change the structure of a file. As in a shell, the default
also stands in for an empty variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.secrets import is_secret_name

KeyPath = Sequence[str | int]

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

# How variables end: as written, and as the reader of YAML writes it meanwhile.
_CLOSING = ("}", "\ue001")

_SURROGATE = re.compile("[\ud800-\udfff]")

# Who names a device as a file shall not take all memory.
_LARGEST = 50_000_000

_PIECE = 100_000


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
        text = None if value is None or isinstance(value, str) else self.source_text(path)
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
        with path.open(encoding="utf-8-sig") as file:
            # In pieces: the room for all that is asked for at once is taken before anything is read.
            text = "".join(islice(iter(partial(file.read, _PIECE), ""), _LARGEST // _PIECE + 1))
    except FileNotFoundError:
        raise ConfigError(Problem("no such file", file=name)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"not UTF-8 text (byte {error.start})", file=name)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=name)) from None
    except ValueError as error:
        raise ConfigError(Problem(f"cannot be read: {error}", file=name)) from None
    if len(text) > _LARGEST:
        raise ConfigError(Problem(f"has more than {_LARGEST:,} characters", file=name))
    return text


def substituted(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str) -> str:
    """``pattern.sub`` for a pattern of variables."""
    # Behind the last closing brace, every variable that begins would be looked for to the end of the text.
    end = max(map(text.rfind, _CLOSING)) + 1
    return pattern.sub(replace, text[:end]) + text[end:]


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
            if found and is_secret_name(variable):
                self.secrets.add(found)
            return found

        return substituted(self._pattern, value, text)
