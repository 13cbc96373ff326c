"""The largest of many values, without keeping all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappush, heapreplace

_MOST = 10


@dataclass
class Extremes:
    """The cases with the largest values; each has its value, its position in the data, and its name."""

    _heap: list[tuple[float, int, str]] = field(default_factory=list)

    def add(self, value: float, position: int, name: str) -> None:
        """Count a case."""
        entry = (value, -position, name)
        if len(self._heap) < _MOST:
            heappush(self._heap, entry)
        elif entry > self._heap[0]:
            heapreplace(self._heap, entry)

    @property
    def largest(self) -> list[tuple[float, int, str]]:
        """The cases, the largest value first."""
        return [(value, -position, name) for value, position, name in sorted(self._heap, reverse=True)]
