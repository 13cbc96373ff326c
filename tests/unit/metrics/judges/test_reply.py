"""Accepted and rejected replies of judges."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agenteval.metrics import text
from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_replies import check_scale, first_problem, json_object, may_be_score, read_reply


class Judged(BaseModel):
    reason: str
    score: float


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]


class Verdicts(BaseModel):
    verdicts: list[Verdict]


OBJECT = {"reason": "fine", "score": 8}
TEXT = json.dumps(OBJECT)

READ: list[tuple[str, object]] = [
    (f"Here is my verdict:\n\n{TEXT}\n\nI hope this helps.", OBJECT),
    ('{"reason": "fine", "score": 8,}', OBJECT),
    ('```json\n{\n  "reason": "fine",\n  "score": 8,\n}\n```', OBJECT),
    (f"\ufeff{TEXT}", OBJECT),
    (f'<think>A draft: {{"score": 1}}, or {{not yet</think>{TEXT}', OBJECT),
    (f'The set {{a, b}} of "parts {TEXT} and {{c}}', OBJECT),
    ('First {"score": 3}, on reflection {"score": 8}', {"score": 8}),
    ('{"reason": "two\nlines\tand \\d", "score": 8}', {"reason": "two\nlines\tand \\d", "score": 8}),
    ('{"reason": "it\\\'s \\"{fine", "score": 8}', {"reason": "it's \"{fine", "score": 8}),
    (
        "{'reason': 'it\\'s \"fine\"', 'score': 8, 'passed': True, 'error': None}",
        {
            "reason": 'it\'s "fine"',
            "score": 8,
            "passed": True,
            "error": None,
        },
    ),
    ('{"reason": "a list, ] and }"}', {"reason": "a list, ] and }"}),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_an_object_is_read_as_models_write_it(text: str, value: object) -> None:
    assert json_object(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Eight out of ten.",
        "}{",
        '{"score": 8',
        '{"verdicts": [{"score": 10}], "score": ',
        "{'score': 1, 'score': 10}",
        "{score, 8}",
        '<think>{"score": 8}',
        '{"score": 8}</think>',
        "[]",
        "8",
    ],
)
def test_a_reply_without_an_object_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(MetricError, match=r"^the judge's reply is not JSON: ") as caught:
        json_object(text)
    assert str(caught.value).endswith(repr(" ".join(text.split())))


@pytest.mark.parametrize("text", ['{"score": 1, "score": 10}', '{"verdict": {"score": 1, "score": 10}}'])
def test_of_two_scores_none_counts(text: str) -> None:
    with pytest.raises(MetricError, match="has two values of 'score'"):
        json_object(text)


def test_endless_nesting_is_an_error_as_any_other() -> None:
    with pytest.raises(MetricError, match="not JSON"):
        json_object('{"a":' * 5_000 + "1" + "}" * 5_000)


@pytest.mark.parametrize(("score", "read"), [("8", 8.0), ('"8"', 8.0), ("8.5", 8.5), ("0", 0.0), ('" 7 "', 7.0)])
def test_a_score_may_be_written_as_text(score: str, read: float) -> None:
    assert read_reply(f'{{"reason": "fine", "score": {score}}}', Judged).score == read


@pytest.mark.parametrize(
    ("text", "schema", "problem"),
    [
        ('{"score": 8}', Judged, "does not fit Judged: reason: Field required"),
        ('{"reason": "fine", "score": "8/10"}', Judged, "does not fit Judged: score: "),
        ('{"reason": "fine", "score": true}', Judged, "the judge's score is True, not a number"),
        ('{"verdicts": [{"verdict": "yes"}, {"verdict": "maybe"}]}', Verdicts, "Verdicts: verdicts.1.verdict: "),
        ('{"verdicts": "yes"}', Verdicts, "does not fit Verdicts: verdicts: "),
    ],
)
def test_mismatches_are_named(text: str, schema: type[BaseModel], problem: str) -> None:
    with pytest.raises(MetricError) as caught:
        read_reply(text, schema)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("score", "strict"), [(0, False), (5, False), (7.5, False), (10, False), (0, True), (1, True)]
)
def test_scores_on_the_scale(score: float, strict: bool) -> None:
    check_scale(score, strict=strict)


@pytest.mark.parametrize("score", [42, -1, 10.01, 11, float("inf"), float("-inf"), float("nan")])
def test_scores_off_the_scale(score: float) -> None:
    with pytest.raises(MetricError, match=rf"^the judge's score is {score:g}, outside its scale of 0 to 10$"):
        check_scale(score, strict=False)


@pytest.mark.parametrize("score", [8, 0.7, -1, 10, float("nan")])
def test_a_strict_judge_scores_0_or_1(score: float) -> None:
    with pytest.raises(MetricError, match=rf"^the judge's score is {score:g}, but only 0 and 1 are allowed$"):
        check_scale(score, strict=True)


@pytest.mark.parametrize(
    ("token", "may"), [("0", True), ("10", True), ("11", False), ("100", False), ("score", True), ("", True)]
)
def test_alternatives_off_the_scale(token: str, may: bool) -> None:
    assert may_be_score(token) is may


def with_reason(**schema: Any) -> dict[str, Any]:
    return {"properties": {"reason": schema}}


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def test_no_reference_reads_a_file_or_sends_a_request(tmp_path: Path, listening: socket.socket) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "secret"}', encoding="utf-8")
    for reference in (secret.as_uri(), f"http://127.0.0.1:{listening.getsockname()[1]}/", "other.json"):
        with pytest.raises(MetricError, match="is not in the schema"):
            first_problem(with_reason(**{"$ref": reference}), {"reason": "fine"})
    with pytest.raises(BlockingIOError):
        listening.accept()


def test_references_in_the_schema_and_patterns_count() -> None:
    schema = with_reason(**{"$ref": "#/$defs/short"}) | {"$defs": {"short": {"pattern": "^[a-z]+$"}}}
    assert first_problem(schema, {"reason": "fine"}) is None
    assert first_problem(schema, {"reason": "Not fine"}) == "$.reason: 'Not fine' does not match '^[a-z]+$'"


def test_a_pattern_that_takes_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LIMIT_S", 0.05)
    with pytest.raises(MetricError, match="takes too long"):
        first_problem(with_reason(pattern="^(a|a|aa)+$"), {"reason": "a" * 60 + "!"})
