"""Replies of judges and their templates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_quota import judgement_key
from agenteval.metrics.judge_replies import PARSERS, first_float, first_number_1_10, json_score, render
from agenteval.suite.forms import PLACEHOLDERS, template_warnings

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


RECORD: dict[str, Any] = {
    "trace_id": "t-1",
    "iteration": 0,
    "persona": "novice",
    "input": "Where?",
    "output": "Over {input} there.",
    "duration_ms": 12.5,
    "metadata": {"topic": "orders", "nested": {"id": 7}, "guidelines": "Be kind.", "odd-name": "x"},
    "requirements": ["a", "b"],
    "conversation": [{"role": "user", "content": "Hi"}],
    "timeline": [{"type": "tool", "name": "find", "raw": {"name": "find"}}, "odd"],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{output}", "Over {input} there."),
        ("{persona} {trace_id} {iteration}", "novice t-1 0"),
        ("{metadata.topic}", "orders"),
        ("{metadata.nested.id}", "7"),
        ("{metadata.odd-name}", "x"),
        ("[{metadata.none}]", "[]"),
        ("{requirements}", '["a", "b"]'),
        ("{guidelines}", "Be kind."),
        ("{observations}", '[{"type": "tool", "name": "find"}, "odd"]'),
        # Unknown placeholders and literal braces stay unchanged.
        ("{unknown} {input.text} {Input}", "{unknown} {input.text} {Input}"),
        ('{"score": 8} for {input}', '{"score": 8} for Where?'),
        ("{} { } {0} {input", "{} { } {0} {input"),
        ("{input!r} {input:>9}", "{input!r} {input:>9}"),
        # As with str.format, if the whole template is written for it.
        ('{{"score": 8}} for {input}', '{"score": 8} for Where?'),
        ("{{input}}", "{input}"),
        ("{{input}} and {", "{Where?} and {"),
    ],
)
def test_rendering(template: str, text: str) -> None:
    assert render(template, RECORD) == text


def test_the_whole_metadata() -> None:
    assert render("{metadata}", {"metadata": {"a": [1, None]}}) == '{"a": [1, null]}'
    assert render("{metadata}", {"summary": {"raw": {"metadata": {"a": 1}}}}) == '{"a": 1}'
    assert render("{metadata}|{metadata.a}", {"metadata": "text"}) == "text|"


# Keys that FluxLoop CLI 0.2.30 computed for these traces.
FLUXLOOP_TEMPLATE = (
    "{input}|{output}|{persona}|{iteration}|{trace_id}|{metadata}|{history}|{guidelines}|{policy_context}|"
    "{requirements}|{supporting_data}|{knowledge_base}|{{x}}|{other}"
)
FLUXLOOP_KEYS: list[tuple[dict[str, Any], str]] = [
    (
        {
            "trace_id": "a",
            "iteration": 0,
            "persona": "novice",
            "input": "Où?",
            "output": "Là.",
            "conversation": [{"role": "user", "content": "Où?"}],
            "duration_ms": 3.5,
        },
        "42eb1957650cdda9d69d6609b37b672ce6a27bffb347fa5776583d31c4fbc6ca",
    ),
    (
        {
            "trace_id": "a",
            "iteration": 2,
            "persona": None,
            "input": "x",
            "output": {"answer": "é", "ok": True, "none": None, "list": [1, 2.5, "a'b"]},
        },
        "6280d516fcde4e7692bf4ff01e2a2c388d41d2163360d4bf48b16025c3f5f196",
    ),
    (
        {
            "trace_id": "a",
            "iteration": 1,
            "input": "x",
            "output": False,
            "metadata": {"guidelines": ["é"], "requirements": {"a": None}, "policy_context": "p", "expected": "e"},
            "policy_context": "",
            "history": [{"role": "user"}],
        },
        "892b0a3920a2561dd6be9cba7c7bd5bcb9330c29bc808ab0ced128721ffba5ce",
    ),
]


def test_judgements_have_the_keys_of_fluxloop() -> None:
    keys = [
        judgement_key(
            evaluator="tone",
            model="gpt-5-mini",
            parameters={"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}},
            prompt=render(FLUXLOOP_TEMPLATE, trace),
            trace_id=trace.get("trace_id"),
            iteration=trace.get("iteration"),
        )
        for trace, _ in FLUXLOOP_KEYS
    ]
    assert keys == [key for _, key in FLUXLOOP_KEYS]


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_every_placeholder_is_replaced(name: str) -> None:
    assert render(f"<{{{name}}}>", {name: "value"}) == "<value>"
    assert template_warnings(f"<{{{name}}}>") == []


def test_inserted_text_can_be_quoted() -> None:
    quoted = render("A {input} and {metadata.topic}", RECORD, lambda name, text: f"<{name}|{text}>")
    assert quoted == "A <input|Where?> and <metadata.topic|orders>"


@given(st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"])), st.text(), st.text())
def test_values_are_never_read_as_templates(template: str, first: str, second: str) -> None:
    record = {"input": first, "output": second}
    assert render(template + "{input}|{output}", record) == f"{template}{first}|{second}"


@pytest.mark.parametrize(
    ("template", "warnings"),
    [
        ("{input} {metadata.x}", []),
        ("{{literal}}", []),
        ("{outptu} {outptu} {other}", ["{outptu} is not", "{other} is not"]),
        ('{"score": 1} {input}', ["braces without"]),
        ("{} {nobody}", ["{nobody} is not", "braces without"]),
        ("{input", ["braces without"]),
    ],
)
def test_warnings(template: str, warnings: list[str]) -> None:
    found = template_warnings(template)
    assert len(found) == len(warnings)
    assert all(text.startswith(start) for text, start in zip(found, warnings, strict=True))
