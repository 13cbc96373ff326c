"""Templates of judges: replaced placeholders, unchanged text, and warnings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.judge_quota import judgement_key
from agenteval.metrics.judge_replies import render
from agenteval.suite.forms import PLACEHOLDERS, has_text, template_warnings

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


def test_an_empty_field_is_looked_for_in_the_metadata() -> None:
    assert render("{guidelines}", {"guidelines": "", "metadata": {"guidelines": "y"}}) == "y"


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
    (
        {
            "trace_id": "a",
            "iteration": 1,
            "input": "x",
            "output": "y",
            "metadata": {},
            "guidelines": [],
            "supporting_data": 0,
        },
        "ee1f79b8ba4020e8fc1621d9508cdb4ed22462a6f8e115762cbc902873b199cf",
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


@given(st.text(st.sampled_from("{}ab \n"), max_size=30))
def test_only_braces_can_change(template: str) -> None:
    assert render(template, {}).replace("{", "").replace("}", "") == template.replace("{", "").replace("}", "")


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


@pytest.mark.parametrize(
    ("template", "expected"),
    [(None, False), ("", False), ("\n  \n", False), ("# a\n  # b", False), ("# a\nb", True), ("b # a", True)],
)
def test_comments_alone_say_nothing(template: str | None, expected: bool) -> None:
    assert has_text(template) is expected
