"""Flags of cases beside the verdict."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.compare.statistics.designs import case, metric

from agenteval.compare.statistics.case_flags import annotate


def test_new_and_removed_cases() -> None:
    found = annotate(
        metric(case("new", "1", ""), case("gone", "", "11"), case("broken", "", "01"), case("kept", "1", "1"))
    )
    assert found.new == ("new",)
    assert found.removed == ("broken", "gone")
    assert found.removed_passing == ("gone",)


def test_flaky_cases_have_a_history() -> None:
    cases = [
        case("never", "1", "11111", "11111"),
        case("tenth", "1", "11111", "11110"),
        case("half", "1", "10101", "01010"),
        case("nine tenths", "1", "00000", "00001"),
        case("short", "1", "10101", "0101"),
    ]
    assert annotate(metric(*cases)).flaky == ("half", "nine tenths", "tenth")


def test_without_a_threshold_nothing_is_flaky() -> None:
    found = replace(case("a", "1", "10101", "01010"), threshold=None)
    assert annotate(metric(found)).flaky == ()


def test_quarantined_cases() -> None:
    assert annotate(metric(replace(case("a", "1", "1"), quarantined=True), case("b", "1", "1"))).quarantined == ("a",)
