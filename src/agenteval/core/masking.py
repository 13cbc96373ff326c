"""The secrets of an invocation, and the one way to shorten a text that can contain them.

A text is masked before it is cut, because half a secret is not recognised. Errors are built, and shortened, deep
inside of agents and metrics, so the secrets are known everywhere during an invocation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from agenteval.core.authentic import key_in_force
from agenteval.core.credentials import parts_of_secret
from agenteval.core.secrets import environment_secrets, named_secrets, naming_secrets
from agenteval.core.text.escape import one_line
from agenteval.core.text.redact import Redactor

_KNOWN: ContextVar[set[str] | None] = ContextVar("secrets", default=None)


@contextmanager
def masking() -> Iterator[None]:
    """Collect the secrets that become known within the block; an inner block adds to the outer one."""
    if _KNOWN.get() is not None:
        yield
        return
    token = _KNOWN.set(set())
    try:
        with naming_secrets():
            yield
    finally:
        _KNOWN.reset(token)


def add_secrets(secrets: Iterable[str]) -> None:
    """Mask these values as well until the invocation ends."""
    known = _KNOWN.get()
    if known is not None:
        known.update(secrets)


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return a redactor for the given secrets, the known ones, and those in environment variables."""
    ambient = _ambient(frozenset(os.environ.items()), named_secrets())
    own = key_in_force()
    return _redactor(ambient.union(secrets, _KNOWN.get() or (), (own,) if own else ()))


def mask(text: str) -> str:
    """Return the text with the known secrets masked."""
    return redactor()(text)


def shortened(text: str, limit: int) -> str:
    """Return a text as one line without secrets and control sequences, cut to a length in characters."""
    return one_line(mask(text), limit)


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text of several lines without secrets, cut to a length in characters."""
    return mask(text)[:limit]


@lru_cache(maxsize=8)
def _redactor(secrets: frozenset[str]) -> Redactor:
    return Redactor(secrets.union(*map(parts_of_secret, secrets)))


# Finding the secrets takes time, and the environment hardly ever changes.
@lru_cache(maxsize=8)
def _ambient(variables: frozenset[tuple[str, str]], _named: frozenset[str]) -> frozenset[str]:
    return frozenset(environment_secrets(dict(variables)))
