"""Templates of judges: replaced placeholders, unchanged text, and warnings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.judges.template import render
from agenteval.suite.prompt_template import PLACEHOLDERS, has_text, template_warnings

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
        ("{input}", "Where?"),
        ("{output}", "Over {input} there."),
        ("{persona} {trace_id} {iteration}", "novice t-1 0"),
        ("{duration_ms}ms", "12.5ms"),
        ("{metadata.topic}", "orders"),
        ("{metadata.nested}", '{"id": 7}'),
        ("{metadata.nested.id}", "7"),
        ("{metadata.odd-name}", "x"),
        ("[{metadata.none}]", "[]"),
        ("{requirements}", '["a", "b"]'),
        ("{guidelines}", "Be kind."),
        ("[{policy_context}{supporting_data}{knowledge_base}]", "[]"),
        ("{history}", '[{"role": "user", "content": "Hi"}]'),
        ("{observations}", '[{"type": "tool", "name": "find"}, "odd"]'),
        ("{input}{input}", "Where?Where?"),
        ("no placeholder", "no placeholder"),
        ("", ""),
        # Unknown placeholders and literal braces stay unchanged.
        ("{unknown} {input.text} {Input}", "{unknown} {input.text} {Input}"),
        ('{"score": 8} for {input}', '{"score": 8} for Where?'),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("{} { } {0} {input", "{} { } {0} {input"),
        ("{input} } {", "Where? } {"),
        ("{input!r} {input:>9}", "{input!r} {input:>9}"),
        ("{ input }", "{ input }"),
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


def test_an_empty_field_is_looked_for_elsewhere() -> None:
    record = {"history": [], "conversation": ["x"], "guidelines": "", "metadata": {"guidelines": "y"}}
    assert render("{history}{guidelines}", record) == '["x"]y'


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
