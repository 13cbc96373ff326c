"""What a recording is: for each case its iterations, of each its turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from agenteval.agents.base import Reply


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One recorded exchange.

    Attributes:
        answer: the reply, or the text of the error that came instead.
        input: what was asked; ``None`` where the recording does not say, or names the case and so need not.
    """

    answer: Reply | str
    input: str | None = None


# By turn, and by iteration, from 0 on; what was not recorded is missing.
RecordedIteration = Mapping[int, RecordedTurn]
RecordedCase = Mapping[int, RecordedIteration]


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """The case that answers are looked for.

    Attributes:
        inputs: what its turns ask, as far as they are known.
    """

    case_id: str
    name: str
    inputs: tuple[str, ...]


class Recording(Protocol):
    """Recorded answers, whatever their format.

    Attributes:
        is_run: it is what happened, so that all of it is repeated; else a stock of answers, to choose from.
    """

    is_run: ClassVar[bool]

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """What was recorded of a case; empty where nothing was."""
        ...

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """What is worth saying once it is known which cases are asked for."""
        ...
