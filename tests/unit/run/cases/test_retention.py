"""The parts of cases that stay in memory."""

from __future__ import annotations

import random

import pytest
from tests.unit import runs

from agenteval.run import retention
from agenteval.run.retention import KeepAll, ShownOnly, within_limit


def test_a_very_long_case_stays_with_shortened_texts() -> None:
    short, long = runs.case("a"), runs.case("b", response="\U0001f600" * 300_000)
    assert within_limit(short, short.model_dump_json()) is short
    kept = within_limit(long, long.model_dump_json())
    assert len(kept.model_dump_json()) < 30_000
    assert (kept.id, kept.status, kept.score) == (long.id, long.status, long.score)
    assert kept.iterations[0].turns[0].response == "\U0001f600" * 4000 + "…"


def test_cases_come_back_in_the_order_that_is_asked_for() -> None:
    kept = KeepAll()
    for position in (3, 0, 2):
        kept.add(position, runs.case(str(position)))
    assert [item.name for item in kept.cases(range(4))] == ["0", "2", "3"]


@pytest.mark.parametrize("seed", range(5))
def test_of_cases_that_tell_the_same_the_first_is_whole(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Beside the listed ones, in whatever order cases end."""
    monkeypatch.setattr(retention, "MOST_SHOWN", 3)
    cases = [runs.case(f"c{number}", "failed", [{"numeric": 0.3}], f"answer {number % 2}") for number in range(20)]
    order = list(range(20))
    random.Random(seed).shuffle(order)
    kept = ShownOnly(lambda _: False)
    for position in order:
        kept.add(position, cases[position])

    held = kept.cases(range(20))

    assert held[:5] == cases[:5]
    asked = [case.iterations[0].turns[0] for case in held]
    assert [turn.input for turn in asked[5:]] == ["…"] * 15
    assert [turn.response for turn in asked] == [turn.response for case in cases for turn in case.turns]
    assert len({id(case.iterations) for case in held[5:]}) == 2
