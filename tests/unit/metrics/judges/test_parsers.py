"""Replies of judges, and the score in them."""

from __future__ import annotations

import pytest

from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_replies import PARSERS, first_float, first_number_1_10, json_score

FIRST_NUMBERS = [
    ("The score is 8.", 8.0),
    ("(8)", 8.0),
    ("**8**", 8.0),
    ("`7`/10", 7.0),
    ("7.25 of 10", 7.25),
    ("+7", 7.0),
    ("8/10", 8.0),
    ("8 out of 10", 8.0),
    ("8. Good", 8.0),
    ("7-8", 7.0),
    ("8, because 3 of 4 steps are there", 8.0),
    # Mentions of the scale are not scores.
    ("1-10: 7", 7.0),
    ("(1-10) 7/10", 7.0),
    ("0..10 → 3", 3.0),
    ("On a scale of 1 to 10, I say 7", 7.0),
    ("between 1 and 10: 4", 4.0),
    ("Score (out of 10): 7", 7.0),
    ("Score /10: 7", 7.0),
    ("on a 10-point scale: 7", 7.0),
    ("9 (1-10)", 9.0),
    ("Score: 1 and 10 mistakes", 1.0),
    # Numbers in words and lists are not scores either.
    ("GPT-4 did it: 6", 6.0),
    ("v2 gives 9.5", 9.5),
    ("1.2.3 then 5", 5.0),
    ("1. Relevance is good\n2. Clarity is fine\nScore: 6", 6.0),
]
NO_NUMBERS = [
    ("", "no score"),
    ("ten", "no score"),
    ("1-10", "no score"),
    ("/10", "no score"),
    ("-3", "outside its scale"),
    ("Score: -8/10", "outside its scale"),
    ("10.01", "outside its scale"),
    ("85/100", "another scale"),
    ("12/10", "outside its scale"),
    ("1,000", "outside its scale"),
    ("80%", "percentage"),
    ("4/5", "another scale"),
    ("4 out of 5", "another scale"),
]


@pytest.mark.parametrize(("text", "score"), FIRST_NUMBERS)
def test_first_number(text: str, score: float) -> None:
    assert first_number_1_10(text, 10).raw == score
    assert first_float(text, 10).raw == score


@pytest.mark.parametrize(("text", "problem"), NO_NUMBERS)
def test_replies_without_a_first_number(text: str, problem: str) -> None:
    for parser in (first_number_1_10, first_float):
        with pytest.raises(MetricError, match=problem):
            parser(text, 10)


@pytest.mark.parametrize(
    ("text", "max_score", "score"),
    [
        ("0.75", 1, 0.75),
        (".5", 1, 0.5),
        ("0-1: 0.7", 1, 0.7),
        ("1-100: 95/100", 100, 95.0),
        ("4/5", 5, 4.0),
        ("1,000", 2000, 1000.0),
    ],
)
def test_first_float_on_other_scales(text: str, max_score: float, score: float) -> None:
    assert first_float(text, max_score).raw == score


@pytest.mark.parametrize(("text", "max_score"), [("1.01", 1), ("8/10", 5), ("101", 100), ("-0.1", 1), ("5/10", 1)])
def test_first_float_outside_of_other_scales(text: str, max_score: float) -> None:
    with pytest.raises(MetricError):
        first_float(text, max_score)


def test_first_number_stays_on_its_scale_for_any_highest_score() -> None:
    assert first_number_1_10("4/5", 5).raw == 4.0
    assert first_number_1_10("7", 100).raw == 7.0
    for text, max_score in (("7", 5), ("11", 100), ("95", 100)):
        with pytest.raises(MetricError):
            first_number_1_10(text, max_score)


@pytest.mark.parametrize(
    ("text", "max_score", "score"),
    [
        ('{"score": 7.5, "other": {"score": 1}}', 10, 7.5),
        ('{"score": "7.5"}', 10, 7.5),
        ('{"score": 93}', 100, 93.0),
        ('Sure:\n```json\n{"score": 3,}\n```\nBye 9', 10, 3.0),
    ],
)
def test_json_score(text: str, max_score: float, score: float) -> None:
    assert json_score(text, max_score).raw == score


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("7", "not JSON"),
        ('{"score": 7', "not JSON"),
        ('{"rating": 7}', "no number as score"),
        ('{"score": true}', "no number as score"),
        ('{"score": "8/10"}', "no number as score"),
        ('{"score": NaN}', "outside its scale"),
        ('{"score": 1e999}', "outside its scale"),
        ('{"score": ' + "9" * 400 + "}", "outside its scale"),
        ('{"score": -1}', "outside its scale"),
        ('{"score": 11}', "outside its scale"),
    ],
)
def test_replies_without_a_json_score(text: str, problem: str) -> None:
    with pytest.raises(MetricError, match=problem):
        json_score(text, 10)


@pytest.mark.parametrize(
    ("parser", "text", "reason"),
    [
        ("first_number_1_10", "Score: 8/10\nReason: kind and short", "kind and short"),
        ("first_number_1_10", "Score: 8\n**Reason:** kind\nand short", "kind and short"),
        ("first_number_1_10", "8 reason - kind", "kind"),
        ("first_number_1_10", "Reasoning: kind. Score: 8", "kind. Score: 8"),
        ("first_number_1_10", "A kind answer: 8", "A kind answer: 8"),
        ("first_float", "0.5 because", "0.5 because"),
        ("json_score", '{"score": 1, "reason": "kind"}', "kind"),
        ("json_score", '{"reasoning": "kind", "score": 1}', "kind"),
        ("json_score", '{"score": 1, "reason": 3}', '{"score": 1, "reason": 3}'),
    ],
)
def test_reasons(parser: str, text: str, reason: str) -> None:
    assert PARSERS[parser](text, 10).reason == reason


def test_long_reasons_are_cut() -> None:
    assert len(first_number_1_10("8 " + "so " * 1000, 10).reason) == 500
