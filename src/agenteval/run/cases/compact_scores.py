"""The scores of very many cases in little memory: eight bytes each, and what cases share is held once."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence


def set_at(numbers: array[int] | array[float], position: int, value: float) -> None:
    """Set a number that may lie beyond the end; what lies between is 0."""
    missing = position + 1 - len(numbers)
    if missing > 0:
        numbers.frombytes(bytes(missing * numbers.itemsize))
    numbers[position] = value  # type: ignore[call-overload]


class CompactScores:
    """Scores of cases, by metric, under the positions of the cases."""

    def __init__(self) -> None:
        # Which metrics a case has, and how many scores of each; 0 stands for a case that is not there.
        self._shapes: dict[tuple[tuple[str, int], ...], int] = {}
        self._by_number: list[tuple[tuple[str, int], ...]] = [()]
        self._shape_of = array("L")
        self._starts = array("Q")
        self._values = array("d")

    def add(self, position: int, scores: Mapping[str, Sequence[float]]) -> None:
        """The scores of one more case."""
        shape = tuple((name, len(values)) for name, values in scores.items())
        number = self._shapes.get(shape)
        if number is None:
            number = self._shapes[shape] = len(self._by_number)
            self._by_number.append(shape)
        set_at(self._shape_of, position, number)
        set_at(self._starts, position, len(self._values))
        for values in scores.values():
            self._values.extend(values)

    def get(self, position: int) -> dict[str, list[float]] | None:
        """The scores of a case; ``None`` if it was never added."""
        number = self._shape_of[position] if position < len(self._shape_of) else 0
        if not number:
            return None
        found: dict[str, list[float]] = {}
        start = self._starts[position]
        for name, amount in self._by_number[number]:
            found[name] = list(self._values[start : start + amount])
            start += amount
        return found
