"""Reads the mistakes that the command line shows, to compare them with the one-line form of a problem."""

from __future__ import annotations

import re
from dataclasses import dataclass

_INDEX = re.compile(r"\[\d+\]")
_PLACE = re.compile(r"(?P<file>[^\s:]*[^\s:\d][^\s:]*)(?::(?P<line>\d+))?: ")
_TITLES = {"unknown key": "unknown key", "missing key": "this key is required"}


@dataclass(frozen=True)
class Shown:
    """A mistake as it is shown.

    Attributes:
        text: its lines.
        title: what is wrong.
        place: the first place.
        more: number of other places.
    """

    text: str
    title: str
    place: str
    more: int

    def says(self, line: str) -> bool:
        """Return whether a problem in the one-line form, or its beginning, is this one."""
        place = _PLACE.match(line)
        if place is not None and self.place.endswith(place[0][:-2]):
            line = line[place.end() :]
        elif self.place and line.startswith(self.place):
            return True
        parts = re.split(r"; |: |;$|:$|\n", line)
        return all(_INDEX.sub("[]", part).strip() in self.words for part in parts)

    @property
    def words(self) -> str:
        """Everything that is said, in one line."""
        one_line = next((text for start, text in _TITLES.items() if self.title.startswith(start)), "")
        return " ".join(f"{one_line} {self.text}".split())


def shown(text: str) -> list[Shown]:
    """Return the mistakes in the output of a command."""
    return [_shown(block) for block in re.split(r"\n\n|\n(?=error: )", text) if block.startswith("error: ")]


def _shown(block: str) -> Shown:
    title, *lines = block.splitlines()
    place = next((line.strip().removeprefix("--> ") for line in lines if line.strip().startswith("--> ")), "")
    more = re.search(r" and (\d+) more$", place)
    place = place.removesuffix(more[0]) if more else place
    return Shown(block, title.removeprefix("error: "), re.sub(r" \(.*\)$", "", place), int(more[1]) if more else 0)
