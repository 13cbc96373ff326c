"""The sizes of the project and their ceilings."""

from __future__ import annotations

from scripts.budget import lowered, misses

CEILINGS = '[core]\nwhy = "a new format"\nlines = 1000\nmodules = 10\n'


def test_a_size_is_at_most_its_ceiling_and_not_far_below() -> None:
    assert misses(CEILINGS, {"core.lines": 970, "core.modules": 10}) == []
    found = misses(CEILINGS, {"core.lines": 969, "core.modules": 11, "new.lines": 1})
    assert [text.partition(",")[0] for text in found] == ["core.lines is 969", "core.modules is 11", "new.lines is 1"]


def test_a_ceiling_is_lowered_but_never_raised() -> None:
    assert lowered(CEILINGS, {"core.lines": 900, "core.modules": 11}) == CEILINGS.replace("1000", "900")
    assert lowered(CEILINGS, {"other.lines": 1}) == ""
