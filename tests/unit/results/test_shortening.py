"""Large values of results: cut to a limit, with size and hash of the whole."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval.results.case import CaseResult, IterationResult, Score, Shortened, ToolCall, TurnResult
from agenteval.results.masking import shortened, shortened_values, whole_answer

LIMIT = 1024
LARGE = "ä" * LIMIT
# The family: every field of a turn whose size an agent, a suite, a judge or a metric controls.
FIELDS: dict[str, Any] = {
    "input": LARGE,
    "ground_truth": LARGE,
    "response": LARGE,
    "error": LARGE,
    "retrieval_context": [LARGE, "more"],
    "tool_calls": [ToolCall(name=LARGE, args={"a": [LARGE]}, result=LARGE, error=LARGE)],
    "scores": [Score(id="m", kind="standard", score=1, passed=True, status="scored", reason=LARGE, error=LARGE,
                     details={"raw": LARGE})],
}  # fmt: skip
# Numbers, ids and what is computed from them.
SMALL = {"index", "latency_ms", "usage", "retries", "cached", "shortened", "not_asked", "unavailable"}
SMALL_OF_A_SCORE = {
    "id", "kind", "score", "threshold", "passed", "status", "model", "duration_ms", "cost_usd",
    "gating", "not_asked",
}  # fmt: skip


def of(**fields: Any) -> CaseResult:
    turn = TurnResult(**{"index": 0, "input": "q", "ground_truth": None, "response": "a", **fields})
    iteration = IterationResult(index=0, status="passed", score=1, turns=[turn])
    return CaseResult(id="c", name="c", status="passed", score=1, iterations=[iteration])


def cut(case: CaseResult, limit: int = LIMIT) -> tuple[TurnResult, str]:
    small, text = shortened(case, case.model_dump_json(), limit)
    assert text == small.model_dump_json()
    return small.iterations[0].turns[0], text


def test_every_field_of_a_turn_is_known_to_be_small_or_is_shortened() -> None:
    assert TurnResult.model_fields.keys() == FIELDS.keys() | SMALL
    assert Score.model_fields.keys() == SMALL_OF_A_SCORE | {"reason", "error", "details"}
    turn, text = cut(of(**FIELDS))
    named = {"scores.0.reason", "scores.0.error", "scores.0.details", *FIELDS} - {"scores"}
    assert turn.shortened.keys() == named
    # No value is larger than the limit; structure and hashes are a few hundred bytes each.
    assert len(text.encode()) < (len(named) + 2) * LIMIT + 3000


def test_the_beginning_stays_with_size_and_hash_of_the_whole() -> None:
    answer = "x" + "ä" * 1000
    turn, _ = cut(of(response=answer))
    # No character is divided.
    assert turn.response == "x" + "ä" * 511
    assert turn.shortened == {
        "response": Shortened(characters=1001, bytes=2001, sha256=hashlib.sha256(answer.encode()).hexdigest())
    }


def test_what_fits_is_the_same_object_and_leaves_no_trace_in_json() -> None:
    case = of(response="x" * LIMIT, tool_calls=[ToolCall(name="t", args={"n": [1, 2]})])
    small, text = shortened(case, case.model_dump_json(), LIMIT)
    assert small.iterations[0].turns[0] == case.iterations[0].turns[0]
    assert "shortened" not in json.loads(text)["iterations"][0]["turns"][0]


def test_very_many_small_elements_are_limited_too() -> None:
    turn, _ = cut(of(retrieval_context=["p"] * 100_000, tool_calls=[ToolCall(name="")] * 100_000))
    assert 0 < len(turn.retrieval_context) <= LIMIT // 16
    assert 0 < len(turn.tool_calls) <= LIMIT // 16
    assert turn.shortened.keys() == {"retrieval_context", "tool_calls"}
    assert shortened_values(of(shortened=turn.shortened))


def test_answers_are_compared_by_their_whole() -> None:
    one, other = cut(of(response=LARGE + "1"))[0], cut(of(response=LARGE + "2"))[0]
    assert one.response == other.response
    assert whole_answer(one) != whole_answer(other)
    # Of runs with different limits, too.
    whole = of(response=LARGE + "1").iterations[0].turns[0]
    assert whole_answer(whole) == whole_answer(one)
    assert whole_answer(whole) != whole_answer(other)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=600),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=40), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.text(max_size=3000),
    st.lists(st.text(max_size=600), max_size=8),
    st.lists(st.tuples(st.text(max_size=600), VALUES, VALUES), max_size=6),
)
def test_shortening_again_changes_nothing(
    answer: str, passages: list[str], calls: list[tuple[str, Any, Any]]
) -> None:
    tools = [ToolCall(name=name, args=args, result=result) for name, args, result in calls]
    case = of(response=answer, retrieval_context=passages, tool_calls=tools)
    once, text = shortened(case, case.model_dump_json(), LIMIT)
    again, same = shortened(once, text, LIMIT)
    assert (again, same) == (once, text)
    turn = once.iterations[0].turns[0]
    assert len((turn.response or "").encode("utf-8", "replace")) <= LIMIT
    assert case.iterations[0].turns[0].response.startswith(turn.response or "")  # type: ignore[union-attr]
