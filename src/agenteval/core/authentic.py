"""Proves that a cache entry was written by a run with the same key.

User code can write to many places where caches live, and it can compute the name of an entry, because agenteval is
readable. Every entry of a cache that outlives a case therefore carries an HMAC-SHA256 of its key and its content. An
entry without a valid code counts as missing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agenteval.core.errors import ConfigError, Kind, Problem

CACHE_KEY = "AGENTEVAL_CACHE_KEY"
# Codes can be read, so a short key could be found by trying all.
SHORTEST_KEY = 16


@dataclass(frozen=True)
class Seal:
    """Makes and checks the codes of entries.

    Attributes:
        key: the secret; ``None`` makes no codes and believes every entry.
    """

    key: str | None = field(default=None, repr=False)

    @classmethod
    def random(cls) -> Seal:
        """Return a seal that no other process has: it believes only the entries of this one."""
        return cls(secrets.token_hex(32))

    def code(self, *parts: str) -> str | None:
        """Return the code of an entry; ``None`` without a key.

        Args:
            *parts: the cache's name, then the entry's key and content.
        """
        if self.key is None:
            return None
        # JSON, so that different parts never give the same bytes.
        return hmac.new(
            self.key.encode("utf-8", "surrogateescape"), json.dumps(parts).encode(), hashlib.sha256
        ).hexdigest()

    def confirms(self, code: object, *parts: str) -> bool:
        """Return whether an entry can be believed: its code is valid, or there is no key.

        Args:
            code: as stored; any JSON value.
            *parts: as for :meth:`code`.
        """
        expected = self.code(*parts)
        return expected is None or (
            isinstance(code, str) and hmac.compare_digest(expected.encode(), code.encode("utf-8", "replace"))
        )


_IN_FORCE: ContextVar[Seal | None] = ContextVar("seal", default=None)


def seal() -> Seal:
    """Return the seal in force: that of the surrounding :func:`sealed`, else of ``AGENTEVAL_CACHE_KEY``.

    Raises:
        ConfigError: the key is too short.
    """
    given = _IN_FORCE.get()
    if given is not None:
        return given
    key = os.environ.get(CACHE_KEY, "").strip()
    problem = key_problem(key)
    if problem:
        raise ConfigError(Problem(problem, path=CACHE_KEY, kind=Kind.VARIABLE))
    return Seal(key or None)


def key_in_force() -> str | None:
    """Return the key of the surrounding :func:`sealed`, which no text may contain."""
    given = _IN_FORCE.get()
    return given.key if given is not None else None


@contextmanager
def sealed(chosen: Seal) -> Iterator[None]:
    """Use a seal for all caches that are opened in the block."""
    token = _IN_FORCE.set(chosen)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def key_problem(key: str) -> str | None:
    """Return the problem of a key; ``None`` if the key is empty or long enough."""
    if 0 < len(key) < SHORTEST_KEY:
        return (
            f"the key has {len(key)} characters; use {SHORTEST_KEY} or more, such as those of `openssl rand -hex 32`"
        )
    return None
