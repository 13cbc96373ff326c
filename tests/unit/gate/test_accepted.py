"""Which accepted changes count."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from agenteval.gate.integrity import Accepted, accepted_of, acknowledged, in_force
from agenteval.results.model import Difference

TODAY = date(2030, 1, 15)
ENTRY = Accepted("removed", "not needed", TODAY, case="a", fingerprint="f00d", author="Ann")


@pytest.mark.parametrize(
    ("merged", "today", "counts"),
    [
        ((), TODAY, True),
        ((), date(2030, 1, 16), False),
        ((ENTRY.key,), TODAY, False),
        ((replace(ENTRY, reason="other").key,), TODAY, True),
    ],
)
def test_an_entry_counts_until_it_is_merged_or_has_ended(merged: tuple[str, ...], today: date, counts: bool) -> None:
    assert in_force([ENTRY], merged, today) == ((ENTRY,) if counts else ())


@pytest.mark.parametrize("other", [{"author": "Bob"}, {"line": 7}])
def test_the_key_is_that_of_the_content(other: dict[str, Any]) -> None:
    assert replace(ENTRY, **other).key == ENTRY.key


@pytest.mark.parametrize(
    "other", [{"case": "b"}, {"fingerprint": "0"}, {"change": "edited"}, {"until": date(2031, 1, 1)}, {"after": "x"}]
)
def test_other_content_has_another_key(other: dict[str, Any]) -> None:
    assert replace(ENTRY, **other).key != ENTRY.key


@pytest.mark.parametrize(
    ("case_id", "digest", "found"),
    [("a", "f00d", True), ("a", "beef", False), ("b", "f00d", False), ("a", "", False)],
)
def test_an_entry_is_for_one_content_of_one_case(case_id: str, digest: str, found: bool) -> None:
    assert (accepted_of([ENTRY], "removed", case_id, digest) is ENTRY) is found
    assert accepted_of([ENTRY], "edited", case_id, digest) is None


def test_an_acknowledged_difference_names_who_and_why() -> None:
    lost = Difference(kind="removed", case="a", effect="unproven", fingerprint="f00d")
    found = acknowledged(lost, [ENTRY])
    assert found.accepted_by is not None
    assert (found.effect, found.accepted_by.author, found.accepted_by.reason) == ("listed", "Ann", "not needed")
    assert acknowledged(lost, []) is lost
    setting = Difference(kind="setting", setting="gate.strict", effect="base")
    assert acknowledged(setting, [ENTRY]) is setting
