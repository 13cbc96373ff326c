"""Files of the commit that a pull request is compared with, which its author does not control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol


class BaseCommit(Protocol):
    """The commit that a pull request is compared with: the base branch as it is merged into."""

    def read(self, path: Path) -> str:
        """Return the text of a file at this commit; its content is untrusted.

        Args:
            path: the file in the working tree.

        Raises:
            AgentEvalError: the file does not exist there, is too large or not UTF-8, or cannot be read.
        """
        ...


_IN_FORCE: ContextVar[BaseCommit | None] = ContextVar("base commit", default=None)


def base_commit() -> BaseCommit | None:
    """Return the base commit; ``None`` if the run evaluates no change that is not merged, or not in CI."""
    return _IN_FORCE.get()


@contextmanager
def with_base_commit(commit: BaseCommit | None) -> Iterator[None]:
    """Set the base commit inside the block."""
    token = _IN_FORCE.set(commit)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)
