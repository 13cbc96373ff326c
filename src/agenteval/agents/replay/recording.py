"""The interface of recordings: for each case its iterations, for each iteration its turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from agenteval.agents.base import Reply


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One recorded exchange.

    Attributes:
        answer: the reply, or the text of the error.
        input: the question; ``None`` if the recording does not contain it, or names the case instead.
    """

    answer: Reply | str
    input: str | None = None


# By turn and by iteration, from 0; turns that were not recorded are missing.
RecordedIteration = Mapping[int, RecordedTurn]
RecordedCase = Mapping[int, RecordedIteration]


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A case whose recorded answers are searched for.

    Attributes:
        inputs: the inputs of its turns, as far as they are known.
    """

    case_id: str
    name: str
    inputs: tuple[str, ...]


class Recording(Protocol):
    """Recorded answers, whatever their format.

    Attributes:
        is_run: whether it records a run, which is repeated in full; else it is a stock of answers to choose from.
    """

    is_run: ClassVar[bool]

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; empty without any."""
        ...

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Return notices about the recording, after all cases of the run were searched for."""
        ...
