"""A parsed file with the line and source text of every value, and the secrets that it uses.

``${VAR}`` and ``${VAR:-default}`` are replaced in parsed scalar values only, so a value from the
environment stays one text and cannot change the structure of a file. As in a shell, the default
also replaces an empty variable.
"""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Self

from agenteval.core.confine import confinement
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_TEXT, open_regular
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import add_secrets, is_passed, is_reserved_name, is_secret_name, secrets_in

_LINE = re.compile(
    r"""^\s* (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_.]*) \s*=\s*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^\r\n]*?) )
        \s* (?:(?<=\s)\#.*)? $""",
    re.VERBOSE,
)

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a file; other lines are ignored, and the last of repeated names counts."""
    found = (_LINE.match(line) for line in text.splitlines())
    return {match["name"]: _value(match) for match in found if match}


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["double"])
    return match["bare"] if match["single"] is None else match["single"]


# The keys of a file whose values are credentials.


_ANY = "*"
_REST = "**"
# Keys whose values are secret although their names do not look like it.
_SECRET_KEYS = frozenset({"authorization", "cookie", "connection_string"})


@dataclass(frozen=True)
class KeyPatterns:
    """Patterns of key paths, each as its remaining steps; ``*`` is one step, a final ``**`` one or more."""

    rest: frozenset[tuple[str, ...]] = frozenset()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Self:
        """Return the patterns in texts such as ``tools.*.env.*``."""
        return cls(frozenset(tuple(pattern.split(".")) for pattern in patterns))

    @property
    def match(self) -> bool:
        """Whether the path up to here matches a pattern."""
        return () in self.rest

    def after(self, step: str | int) -> KeyPatterns:
        """Return the patterns below a key or index."""
        left: set[tuple[str, ...]] = set()
        for pattern in self.rest:
            if pattern and pattern[0] == _REST:
                left |= {(), pattern}
            elif pattern and pattern[0] in {_ANY, str(step)}:
                left.add(pattern[1:])
        return KeyPatterns(frozenset(left))

    def below(self, path: Sequence[str | int]) -> KeyPatterns:
        """Return the patterns below a path."""
        found = self
        for step in path:
            found = found.after(step)
        return found


@dataclass(frozen=True)
class TextPlace:
    """A text in a file: its key path, and whether the key is for credentials."""

    path: tuple[str | int, ...]
    takes_credentials: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether every value at the key is secret."""
        key = str(self.path[-1]) if self.path else ""
        return self.takes_credentials and (is_secret_name(key) or key.lower() in _SECRET_KEYS)


KeyPath = Sequence[str | int]

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

# The closing brace of a variable: the original, and the YAML reader's replacement for it during parsing.
_CLOSING = ("}", "\ue001")

_SURROGATE = re.compile("[\ud800-\udfff]")

# How messages about keys begin → their kind.
_KINDS = {
    re.compile("unknown key"): Kind.UNKNOWN_KEY,
    re.compile("this key is required"): Kind.MISSING_KEY,
    re.compile(r"(?:type )?'[^']*' is not allowed|no \w+ (?:is called )?'"): Kind.UNKNOWN_NAME,
}

# Characters.
_LARGEST = 50_000_000

_PIECE = 100_000

_BYTE_ORDER_MARK = "\ufeff"


class Positions(Protocol):
    """The positions of values in the text of a file."""

    def line(self, path: KeyPath) -> int | None:
        """Return the 1-based line of a key, or of the nearest parent that exists."""
        ...

    def source_text(self, path: KeyPath) -> str | None:
        """Return the source text of a scalar; ``None`` for other values."""
        ...


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        secrets: values of the environment variables that were used and have secret names, or secret keys.
        warnings: suspicious content that is not an error.
    """

    file: str
    directory: Path
    data: Any
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()
    positions: Positions | None = field(default=None, repr=False)

    def line(self, path: KeyPath) -> int | None:
        """Return the 1-based line of a key, or of the nearest parent that exists."""
        return self.positions.line(path) if self.positions is not None else None

    def source_text(self, path: KeyPath) -> str | None:
        """Return the source text of a scalar (``60.940`` stays ``60.940``); ``None`` for other values."""
        return self.positions.source_text(path) if self.positions is not None else None

    def as_written(self, value: Any, path: KeyPath) -> Any:
        """Return the value at a path; numbers and booleans are returned as their source text."""
        if isinstance(value, list):
            return [self.as_written(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.as_written(item, (*path, key)) for key, item in value.items()}
        text = None if value is None or isinstance(value, str) else self.source_text(path)
        return value if text is None else text

    def texts_as_written(self, value: dict[Any, Any], path: KeyPath, keys: Iterable[str]) -> dict[Any, Any]:
        """Return the mapping at a path in which the values of some keys are as written."""
        # Nearly all values are texts already.
        others = [key for key in keys if not isinstance(value.get(key), str | None)]
        return value | {key: self.as_written(value[key], (*path, key)) for key in others} if others else value

    def place(self, path: KeyPath) -> str:
        """Return ``file:line`` of a key, for messages."""
        line = self.line(path)
        return f"{self.file}:{line}" if line else self.file

    def problem(self, path: KeyPath, message: str, kind: Kind | None = None, mark: str = "") -> Problem:
        """Return a problem at a key of this document; its kind follows from the beginning of the message.

        Args:
            message: ``problem; fix``.
            mark: the wrong text in the line; default: a text that the problem quotes, or else the value.
        """
        kind = kind or next((kind for start, kind in _KINDS.items() if start.match(message)), Kind.VALUE)
        if not mark and kind in _OF_VALUES and "'" not in message.partition(";")[0]:
            mark = self._written(path)
        return Problem(message, file=self.file, line=self.line(path), path=dotted(path), kind=kind, mark=mark)

    def _written(self, path: KeyPath) -> str:
        """Return a value of one line as the file writes it; empty for other values, and without the key."""
        value = self.data
        for step in path:
            try:
                value = value[step]
            except (LookupError, TypeError):
                return ""
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            text = self.source_text(path) or str(value)
            return text if len(text.splitlines()) == 1 else ""
        return (self.source_text(path) or str(value).lower()) if isinstance(value, bool) else ""


# Problems of a value, not of its key.
_OF_VALUES = frozenset({Kind.VALUE, Kind.THRESHOLD, Kind.UNKNOWN_NAME})


def dotted(path: KeyPath) -> str:
    """Return a path as text: ``("test_cases", 0, "input")`` as ``test_cases[0].input``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def read_text(path: Path, name: str) -> str:
    """Read a file as text."""
    try:
        with TextIOWrapper(open_regular(path, limit=LARGEST_TEXT), encoding="utf-8") as file:
            # In pieces: one large read would allocate all its memory first.
            text = "".join(islice(iter(partial(file.read, _PIECE), ""), _LARGEST // _PIECE + 1))
    except FileNotFoundError:
        raise ConfigError(Problem("no such file", file=name, kind=Kind.FILE)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"not UTF-8 text (byte {error.start})", file=name, kind=Kind.FILE)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=name, kind=Kind.FILE)) from None
    except ValueError as error:
        raise ConfigError(Problem(f"cannot be read: {error}", file=name, kind=Kind.FILE)) from None
    if len(text) > _LARGEST:
        raise ConfigError(Problem(f"has more than {_LARGEST:,} characters", file=name, kind=Kind.FILE))
    # Python's decoder for files with this mark accepts a part of the mark as an empty file.
    return text.removeprefix(_BYTE_ORDER_MARK)


def substituted(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str) -> str:
    """Return the same as ``pattern.sub``, for a pattern of variables."""
    # After the last closing brace, the pattern would search to the end of the text for each variable.
    end = max(map(text.rfind, _CLOSING)) + 1
    return pattern.sub(replace, text[:end]) + text[end:]


@dataclass(frozen=True, slots=True)
class VariableProblem(Problem):
    """A variable that is not set or not allowed."""

    at: tuple[str | int, ...] = ()


def refusal(name: str, place: TextPlace, *, is_added: bool = False) -> str:
    """Return why a variable is not inserted at a place of a file; empty if it is.

    In a CI run, other texts than credentials get no more variables than user code, whether they are set or not.

    Args:
        is_added: whether the variable is of the files of a project, and the environment does not have it.
    """
    if is_reserved_name(name):
        return "belongs to the runner and is not replaced in files; pass the value in a variable of another name"
    if place.takes_credentials or is_added or is_passed(name, confinement().pass_env):
        return ""
    return "is not passed to agents and suites in a CI run; list it in pass_env of agenteval.yaml"


def environment_with(added: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment, and variables of the files of a project, which it does not have."""
    return ChainMap(os.environ, dict(added)) if added else os.environ


class Variables:
    """Replaces variables in the texts of one file, and records missing and refused variables and secrets."""

    def __init__(
        self, file: str, environment: Mapping[str, str] | None = None, pattern: re.Pattern[str] = VARIABLE
    ) -> None:
        self._file = file
        self._environment = os.environ if environment is None else environment
        self._pattern = pattern
        self.problems: list[Problem] = []
        self.secrets: set[str] = set()

    def report(self, unset: list[Problem] | None) -> None:
        """Add the problems to a list of the caller.

        Raises:
            ConfigError: there are problems, and no list.
        """
        if unset is not None:
            unset.extend(self.problems)
        elif self.problems:
            raise ConfigError(self.problems)

    def replace(self, text: str, line: int | None, place: TextPlace) -> str:
        """Return the text with its variables replaced. Unset and refused variables stay and become problems."""

        def value(match: re.Match[str]) -> str:
            variable, default = match.group(1), match.group(2)
            found = self._environment.get(variable)
            refused = refusal(variable, place, is_added=found is not None and variable not in os.environ)
            if refused:
                message = f"environment variable {variable} {refused}"
                self._add(message, line, place, dotted(place.path))
                return match.group()
            if not found and default is not None:
                return default
            if found is None:
                problem = f"is not set; set it, or write ${{{variable}:-default}}"
            elif _SURROGATE.search(found):
                problem = "is not UTF-8 text"
            else:
                problem = ""
            if found is None or problem:
                self._add(f"environment variable {variable} {problem}", line, place)
                return match.group()
            secrets = {found} if found and (is_secret_name(variable) or place.is_secret) else secrets_in("", found)
            self.secrets |= secrets
            add_secrets(secrets)
            return found

        return substituted(self._pattern, value, text)

    def _add(self, message: str, line: int | None, place: TextPlace, path: str = "") -> None:
        self.problems.append(
            VariableProblem(message, file=self._file, line=line, path=path, kind=Kind.VARIABLE, at=tuple(place.path))
        )
