"""What a run did not measure although it counts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import SUITE, broken, case, iteration, not_asked, results, score, skipped, turn

from agenteval.results.case import CaseResult, CaseStatus, NotAskedCause, Score
from agenteval.results.history import unmeasured
from agenteval.results.model import Results

PASSED = score("rule")
JUDGED = score("quality", model="judge")
NINE: list[tuple[CaseStatus, list[Score]]] = [("passed", [JUDGED])] * 9
UNJUDGED: tuple[CaseStatus, list[Score]] = ("passed", [PASSED, broken("quality")])
# The eleventh case of a run is quarantined.
QUARANTINED = {f"{SUITE}::10"}


def of(status: CaseStatus, *scores: Score, name: str = "a") -> CaseResult:
    return case(name).model_copy(update={"status": status, "iterations": [iteration(status, turn(*scores))]})


def run(*cases: tuple[CaseStatus, list[Score]]) -> Results:
    return results(*(of(status, *scores, name=str(number)) for number, (status, scores) in enumerate(cases)))


@pytest.mark.parametrize(
    ("now", "what", "text"),
    [
        (run(UNJUDGED, UNJUDGED), "metric", "metric 'quality' has no score: all 2 attempts ended in an error"),
        (run(("error", [broken("quality")])), "metric", "metric 'quality' has no score: it ended in an error"),
        (
            run(("passed", [JUDGED]), ("skipped", [not_asked(cause="budget")])),
            "budget",
            "1 of 2 cases not fully judged: budget of 5 calls",
        ),
        (run(*NINE[:8], *[UNJUDGED] * 3), "cases", "2 of 10 cases not fully evaluated: a metric ended in an error"),
    ],
)
def test_what_counts_and_was_not_measured_is_named(now: Results, what: str, text: str) -> None:
    found = {item.what: item for item in unmeasured(now, 0.1, QUARANTINED)}
    assert found[what].text == text  # type: ignore[index] # a word of the table above
    assert found[what].mended_by == "outside"  # type: ignore[index]


@pytest.mark.parametrize(
    "now",
    [
        run(),
        run(("passed", [PASSED, JUDGED])),
        run(("skipped", [skipped("quality")])),
        run(("passed", [PASSED, score("note", None, None, status="error", gating=False)])),
        run(("passed", [JUDGED]), ("skipped", [not_asked(cause="sample")]), ("skipped", [not_asked(cause="limit")])),
        run(*NINE, UNJUDGED, ("skipped", [])),
        run(*NINE, UNJUDGED, UNJUDGED),
        results(*(of("passed", PASSED, name=str(n)) for n in range(10)), of("error", broken("quality"), name="10")),
    ],
)
def test_what_does_not_count_or_was_left_out_on_purpose_is_not_named(now: Results) -> None:
    assert unmeasured(now, 0.1, QUARANTINED) == ()


CAUSES: list[NotAskedCause | None] = [None, "budget", "limit", "sample"]


@given(causes=st.lists(st.sampled_from(CAUSES), max_size=30))
def test_judged_and_not_judged_cases_add_up(causes: list[NotAskedCause | None]) -> None:
    now = run(*(("passed", [JUDGED if cause is None else not_asked(cause=cause)]) for cause in causes))
    judging = now.summary.judging
    counts = Counter(cause for cause in causes if cause is not None)
    assert (judging is None) is (not counts)
    if judging is not None:
        assert (judging.cases, judging.judged) == (len(causes), causes.count(None))
        assert {item.cause: item.cases for item in judging.not_judged} == counts
