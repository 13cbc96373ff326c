"""The parts of cases that stay in memory."""

from __future__ import annotations

from tests.unit import runs

from agenteval.run.cases.retention import KeepAll, within_limit


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
