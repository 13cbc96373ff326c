"""The sizes of the project and their ceilings."""

from __future__ import annotations

from scripts.budget import lowered, misses

CEILINGS = '[core]\nwhy = "a new format"\nlines = 1000\nmodules = 10\n'


def test_a_size_is_at_most_its_ceiling_and_not_far_below() -> None:
    assert misses(CEILINGS, {"core.lines": 970, "core.modules": 10}) == []
    assert misses(CEILINGS, {"core.lines": 969, "core.modules": 11, "new.modules": 1}) == [
        "core.lines is 969, its ceiling 1000: lower the ceiling",
        "core.modules is 11, its ceiling 10: take something away",
        "new.modules is 1, its ceiling 0: take something away",
    ]


def test_a_ceiling_is_lowered_but_never_raised() -> None:
    assert lowered(CEILINGS, {"core.lines": 900, "core.modules": 11}) == CEILINGS.replace("1000", "900")
