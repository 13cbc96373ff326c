"""The earlier attempts of a pull request, as a CI host keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agenteval.results.model import Memory, Results


@dataclass(frozen=True)
class EarlierAttempt:
    """The newest attempt before this run.

    Attributes:
        results: its results; untrusted, but validated.
        restore: writes its journals into an empty report directory; returns false if it left none.
    """

    results: Results
    memory: Memory
    restore: Callable[[Path], bool] = field(repr=False)


@dataclass(frozen=True)
class Recollection:
    """What is known of the earlier attempts.

    Attributes:
        newest: the newest one; ``None`` for the first one, and if they were forgotten.
    """

    newest: EarlierAttempt | None = None
    forgotten_by: str | None = None
    warnings: tuple[str, ...] = ()


class AttemptSource(Protocol):
    """A place that keeps the results of earlier attempts, such as the artifacts of a CI host."""

    def recall(self) -> Recollection:
        """Return what is known of the earlier attempts; a failure is a warning."""
        ...
