"""Which environment variables ``${VAR}`` inserts, and at which keys.

A variable that is secret-like by its name or value, the runner's or agenteval's own is inserted only at a key for
credentials, or if ``allow_env`` of ``agenteval.yaml`` lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from agenteval.core.errors import AgentEvalError
from agenteval.core.secrets import has_credential, is_own_name, is_reserved_name, is_runner_name, is_secret_name

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
class Place:
    """A text in a file: its key path, and whether the key is for credentials."""

    path: tuple[str | int, ...]
    takes_credentials: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether every value at the key is secret."""
        key = str(self.path[-1]) if self.path else ""
        return self.takes_credentials and (is_secret_name(key) or key.lower() in _SECRET_KEYS)


@dataclass(frozen=True)
class AllowedVariables:
    """The variables that texts of suites and configuration may use.

    Attributes:
        patterns: ``allow_env`` of the ``agenteval.yaml`` in the working tree.
        base: returns ``allow_env`` on the base branch of a change, or raises :class:`AgentEvalError`; it is
            called only if a text needs it. ``None``: the list of the working tree counts.
    """

    patterns: tuple[str, ...] = ()
    base: Callable[[], Sequence[str]] | None = None

    def refusal(self, name: str, place: Place, value: str | None = None) -> str | None:
        """Return why a variable is not inserted at a place; ``None`` if it is.

        Args:
            name: of the variable.
            place: the text that it is inserted in.
            value: of the variable, ``None`` if it is not set. A value that contains a credential counts as a secret
                under any name.
        """
        if is_reserved_name(name):
            return "belongs to the runner and is not replaced in files; pass the value in a variable of another name"
        if place.takes_credentials and not is_own_name(name):
            return None
        kind = _kind(name)
        if kind is None and value is not None and has_credential(value):
            kind = "contains a credential"
        return None if kind is None else self._unlisted(name, kind)

    def _unlisted(self, name: str, kind: str) -> str | None:
        if not _is_listed(name, self.patterns):
            where = "; for a change that is not merged, the list on the base branch counts"
            return f"{kind}, so it is not replaced here; list it in allow_env of agenteval.yaml{where}"
        if self.base is None:
            return None
        needed = f"{kind}, and allow_env of agenteval.yaml on the base branch must list it, as for every change"
        try:
            listed = self.base()
        except AgentEvalError as error:
            return f"{needed}, which cannot be read: {error}"
        return None if _is_listed(name, listed) else f"{needed} too; merge that change to the base branch first"


_IN_FORCE: ContextVar[AllowedVariables] = ContextVar("allowed variables", default=AllowedVariables())  # noqa: B039


def allowed_variables() -> AllowedVariables:
    """Return the variables that files may use here."""
    return _IN_FORCE.get()


@contextmanager
def allowing(allowed: AllowedVariables) -> Iterator[None]:
    """Let the files that are read inside the block use these variables."""
    token = _IN_FORCE.set(allowed)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def _kind(name: str) -> str | None:
    if is_own_name(name):
        return "configures agenteval"
    if is_secret_name(name):
        return "has the name of a secret"
    return "belongs to the runner" if is_runner_name(name) else None


def _is_listed(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
