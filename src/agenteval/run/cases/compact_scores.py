"""Stores the scores of many cases in little memory: eight bytes per score, and shared metric names only once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence


def set_at(numbers: array[int] | array[float], position: int, value: float) -> None:
    """Set the number at a position; a shorter array is filled with 0 up to that position."""
    missing = position + 1 - len(numbers)
    if missing > 0:
        numbers.frombytes(bytes(missing * numbers.itemsize))
    numbers[position] = value  # type: ignore[call-overload]


class CompactScores:
    """The scores of cases by metric; a case is identified by its position in the plan."""

    def __init__(self) -> None:
        # The metrics of a case and the number of scores of each; shape 0 means that the case was not added.
        self._shapes: dict[tuple[tuple[str, int], ...], int] = {}
        self._by_number: list[tuple[tuple[str, int], ...]] = [()]
        self._shape_of = array("L")
        self._starts = array("Q")
        self._values = array("d")

    def add(self, position: int, scores: Mapping[str, Sequence[float | None]]) -> None:
        """Add the scores of a case; `None` is a lost one."""
        shape = tuple((name, len(values)) for name, values in scores.items())
        number = self._shapes.get(shape)
        if number is None:
            number = self._shapes[shape] = len(self._by_number)
            self._by_number.append(shape)
        set_at(self._shape_of, position, number)
        set_at(self._starts, position, len(self._values))
        for values in scores.values():
            self._values.extend(math.nan if value is None else value for value in values)

    def get(self, position: int) -> dict[str, list[float | None]] | None:
        """Return the scores of a case; ``None`` if it was never added."""
        number = self._shape_of[position] if position < len(self._shape_of) else 0
        if not number:
            return None
        found: dict[str, list[float | None]] = {}
        start = self._starts[position]
        for name, amount in self._by_number[number]:
            values = self._values[start : start + amount]
            found[name] = [None if math.isnan(value) else value for value in values]
            start += amount
        return found
