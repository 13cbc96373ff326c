"""Reported numbers of tokens: which are believed, and what replaces others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.llm.budget import plausible_usage
from agenteval.core.llm.calls import Completion
from agenteval.core.llm.models import ModelSpec

MODEL = ModelSpec("openai", "gpt-4.1")


def used(model: ModelSpec, tokens_in: Any, tokens_out: Any, text: str = "x" * 40) -> tuple[Any, Any, bool]:
    found, is_estimated = plausible_usage(model, Completion(text, tokens_in, tokens_out), 1000)
    return found.input_tokens, found.output_tokens, is_estimated


@pytest.mark.parametrize(
    ("reported", "found"),
    [
        ((300, 10), (300, 10, False)),
        ((3000, 296), (3000, 296, False)),
        ((3001, 10), (250, 10, True)),
        ((300, 297), (300, 10, True)),
        ((10**9, 10**30), (250, 10, True)),
        ((-5, -1), (250, 10, True)),
        (("many", [1]), (250, 10, True)),
        ((True, 1.5), (250, 10, True)),
        ((float("nan"), float("inf")), (250, 10, True)),
        ((None, None), (None, None, False)),
        ((0, 0), (0, 0, False)),
    ],
)
def test_tokens(reported: tuple[Any, Any], found: tuple[int, int, bool]) -> None:
    assert used(MODEL, *reported) == found


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (MODEL, 296),
        (ModelSpec("openai", "gpt-4o-mini", max_tokens=500), 296),
        (ModelSpec("openai", "gpt-5"), 296 + 32_768),
        (ModelSpec("openai", "o3", max_tokens=2000), 2296),
        (ModelSpec("azure_openai", "our-judge"), 296 + 32_768),
        (ModelSpec("anthropic", "claude-sonnet-4-6"), 296 + 8192),
        (ModelSpec("anthropic", "claude-sonnet-4-6", max_tokens=100), 396),
        (ModelSpec("ollama", "gpt-oss:20b"), 296 + 32_768),
    ],
)
def test_tokens_of_reasoning(model: ModelSpec, most: int) -> None:
    assert used(model, 10, most) == (10, most, False)
    assert used(model, 10, most + 1) == (10, 10, True)


@given(
    text=st.text(st.characters(exclude_categories=())),
    sent=st.integers(0, 10**6),
    reported=st.one_of(st.integers(), st.floats(), st.text(), st.none()),
)
def test_no_report_is_more_than_a_token_per_byte_and_what_is_hidden(text: str, sent: int, reported: Any) -> None:
    found, _ = plausible_usage(MODEL, Completion(text, reported, reported), sent)
    received = len(text.encode("utf-8", "surrogatepass"))
    assert found.input_tokens is None or 0 <= found.input_tokens <= sent + 2000
    assert found.output_tokens is None or 0 <= found.output_tokens <= received + 256
