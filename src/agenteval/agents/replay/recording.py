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
        input: the question; ``None`` if the recording does not contain it, or identifies the turn by its case.
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
        inputs: the known inputs of its turns.
    """

    case_id: str
    name: str
    inputs: tuple[str, ...]


class Recording(Protocol):
    """Recorded answers of any format.

    Attributes:
        is_run: whether the recording is a run, which is replayed in full; otherwise answers are selected from it.
    """

    is_run: ClassVar[bool]

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; empty without any."""
        ...

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Return notices about the recording, after all cases of the run were searched for."""
        ...
