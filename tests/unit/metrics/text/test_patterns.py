"""Matching the text of an answer, and patterns that take too long."""

from __future__ import annotations

import asyncio
import re
import threading
import warnings
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.support import ROOT

from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.text import LONGEST_REQUIRED, pattern_problem
from agenteval.metrics import text as patterns
from agenteval.metrics.base import MetricError, Observation
from agenteval.metrics.resources import Resources
from agenteval.metrics.scoring import MetricCatalog, score_turn
from agenteval.metrics.text import (
    MOST_TIMEOUTS,
    PatternGivenUpError,
    PatternTimeouts,
    TextMatchMetric,
    found,
    full_match,
    mismatch,
)
from agenteval.results.case import Score, ToolCall
from agenteval.suite.forms import FieldSpec, TextMatch
from agenteval.suite.model import MetricConfig, Place


def matches(strategy: str, expected: str | list[str], text: str, *, case_sensitive: bool = False) -> bool:
    texts = (expected,) if isinstance(expected, str) else tuple(expected)
    match = TextMatch(cast(Any, strategy), texts, case_sensitive)
    outcome = TextMatchMetric(match).measure(Observation("q", text))
    if match.matches_everything:
        assert (outcome.score, outcome.passed) == (1.0, None)
    else:
        assert outcome.passed is (outcome.score == 1.0) is (outcome.reason is None)
    return outcome.score == 1.0


@pytest.mark.parametrize(
    ("strategy", "expected", "everything"),
    [
        ("contains", ("",), True),
        ("contains", (" \n",), True),
        ("contains", ("", "a"), False),
        ("contains_any", ("", "a"), True),
        ("startswith", ("a", ""), True),
        ("endswith", ("a",), False),
        ("match", ("",), True),
        ("match", (".*",), True),
        ("match", ("(?s).*$",), True),
        ("match", ("^",), True),
        ("match", (".+",), False),
        ("match", ("^$",), False),
        ("match", ("[a-z]*x",), False),
        ("exact", ("",), False),
        ("similar", ("",), False),
    ],
)
def test_a_check_that_every_text_passes_gives_no_verdict(
    strategy: str, expected: tuple[str, ...], everything: bool
) -> None:
    match = TextMatch(cast(Any, strategy), expected)
    assert match.matches_everything is everything
    if everything:
        outcome = TextMatchMetric(match).measure(Observation("q", "anything"))
        assert (outcome.passed, outcome.reason) == (None, "every text matches, so nothing is checked")


@pytest.mark.parametrize(
    ("strategy", "expected", "text"),
    [
        ("exact", " 4 ", "4"),
        ("exact", "STRASSE", "straße"),
        ("exact", "", " \n"),
        ("exact", "a  b", "A  B"),
        ("contains", ["a", "a"], "a"),
        ("contains", " Paris ", "Paris"),
        ("match", r"\d+", "there are 12 of them"),
        ("match", "(?i)paris", "PARIS"),
        ("match", "(?m)^b$", "a\nb"),
        ("match", "(?s)a.b", "a\nb"),
        ("match", "x{e}", "x{e}"),
    ],
)
def test_texts_that_match(strategy: str, expected: str | list[str], text: str) -> None:
    assert matches(strategy, expected, text)


@pytest.mark.parametrize(
    ("strategy", "expected", "text"),
    [
        ("match", "paris", "PARIS"),
        ("match", "^b$", "a\nb"),
        ("match", "x{e}", "y"),
    ],
)
def test_texts_that_do_not_match(strategy: str, expected: str | list[str], text: str) -> None:
    assert not matches(strategy, expected, text)


@pytest.mark.parametrize(
    ("strategy", "expected", "text", "said"),
    [
        ("exact", ("4",), "5", "expected '4', got '5'"),
        ("contains", ("a", "b", "c"), "xbx", "'a', 'c' is missing in 'xbx'"),
        ("contains_any", ("a", "b"), "x", "'x' contains none of 'a', 'b'"),
        ("startswith", ("a", "b"), "x", "'x' does not start with 'a', 'b'"),
        ("endswith", ("a",), "x", "'x' does not end with 'a'"),
        ("match", (r"\d",), "x", r"the pattern '\\d' is not found in 'x'"),
    ],
)
def test_the_reason_names_both_sides(strategy: str, expected: tuple[str, ...], text: str, said: str) -> None:
    assert mismatch(TextMatch(cast(Any, strategy), expected), text) == said


SPACES = st.text(" \t\n\u00a0", max_size=3)
WORDS = st.text("aAbB .ßéÉ", max_size=6)


@given(WORDS, WORDS, WORDS, SPACES, SPACES)
def test_a_text_contains_starts_and_ends_with_its_parts(a: str, b: str, c: str, left: str, right: str) -> None:
    text = left + a + b + c + right
    assert matches("contains", b, text)
    assert matches("contains", [c, a, b], text)
    assert matches("startswith", ["\x00", a], text)
    assert matches("endswith", ["\x00", c], text)
    assert matches("exact", (a + b + c).swapcase().swapcase(), text) or "ß" in text
    assert matches("contains", b, text, case_sensitive=True)


# Patterns


PIECES = st.sampled_from(
    [
        *"ab{}ei01,[]()|*+?.^$-",
        "\\d",
        "\\w",
        "\\s",
        "\\b",
        "\\{",
        "\\\\",
        "(?:",
        "(?i)",
        "[^",
        "{1,2}",
        "{e}",
        "{i,d}",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.text("ab{}ei01,d \\", max_size=8))
@example("a{e}", "zzz")
@example("{e<=1}", "q")
@example("a{i,d}", "xa")
@example("[{e}]", "{")
@example("\\\\{e}", "\\{e}")
@example("(?x) a {e} # c", "a{e}")
@example("a{,2}b", "b")
@example("a{}", "a{}")
@example("\\N{EM DASH}{2}", "——")
def test_patterns_match_as_in_the_standard_library(pattern: str, text: str) -> None:
    try:
        with warnings.catch_warnings():
            # Patterns whose meaning will change in a later version of Python.
            warnings.simplefilter("error")
            compiled = re.compile(pattern)
    except (re.error, FutureWarning, OverflowError):
        assume(False)
    assert found(pattern, text) is (compiled.search(text) is not None)
    assert full_match(pattern, text) is (compiled.fullmatch(text) is not None)


def test_a_pattern_that_takes_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    for search in (found, full_match):
        with pytest.raises(MetricError, match="takes too long"):
            search(r"(a|a|aa)+$", "a" * 60 + "b")


# Values


SLOW = r"(a|a|aa)+$"
ANSWER = "a" * 60 + "b"
WHERE = Place(file="suite.toml", line=7)
MATCH = TextMatch("match", (SLOW,))
#: Every metric that runs patterns of suites, with options that make it run one.
METRICS: dict[str, dict[str, Any]] = {
    "text_match": {"match": MATCH},
    "schema": {"schema": FieldSpec(text=MATCH)},
    "tools": {"expected": [{"name": "look", "args": {"text": {"regex": SLOW}}}]},
    "safety": {"blocked": True, "marks": (SLOW,)},
    "rules": {"rules": [{"check": "matches_regex", "pattern": SLOW}]},
}


def config(name: str, options: dict[str, Any]) -> MetricConfig:
    return MetricConfig(id=name, type=name, kind="match", options=options, where=WHERE)


def scores(configs: list[MetricConfig], times: int) -> list[Score]:
    catalog = MetricCatalog(Resources(Gateway(LlmSettings()), cast(Any, None)))
    # JSON text, so that schemas get to the pattern.
    answer = f'"{ANSWER}"' if configs[0].type == "schema" else ANSWER
    observation = Observation("q", answer, tool_calls=(ToolCall(name="look", args={"text": ANSWER}),))

    async def one_after_the_other() -> list[Score]:
        return [score for _ in range(times) for score in await score_turn(configs, observation, catalog)]

    return asyncio.run(one_after_the_other())


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads of searches that were begun; each times out at once."""
    begun: list[str] = []

    def search(*_: object, **__: object) -> None:
        begun.append(threading.current_thread().name)
        raise TimeoutError

    monkeypatch.setattr("regex.search", search)
    monkeypatch.setattr("regex.fullmatch", search)
    return begun


@pytest.mark.parametrize("name", METRICS)
def test_a_pattern_is_given_up_after_three_timeouts(name: str, searches: list[str]) -> None:
    results = scores([config(name, METRICS[name])], times=10)
    assert len(searches) == MOST_TIMEOUTS
    for score in results[MOST_TIMEOUTS:]:
        assert score.status == "error"
        assert str(score.error).startswith(f"suite.toml:7: the pattern {SLOW!r} took more than 1 s on 3 answers")


@pytest.mark.parametrize("name", METRICS)
def test_nobody_waits_for_a_pattern(name: str, searches: list[str]) -> None:
    scores([config(name, METRICS[name])], times=1)
    assert threading.main_thread().name not in searches


def test_other_patterns_and_other_runs_go_on(searches: list[str]) -> None:
    for _ in range(2):
        other = config("text_match", {"match": TextMatch("match", ("b+c",))})
        scores([config("text_match", METRICS["text_match"]), other], times=5)
    assert len(searches) == 2 * 2 * MOST_TIMEOUTS


def test_a_retry_does_not_wait_again(searches: list[str]) -> None:
    retried = MetricConfig("m", "text_match", "match", options=METRICS["text_match"], retries=9, where=WHERE)
    (score,) = scores([retried], times=1)
    assert score.status == "error"
    assert len(searches) == MOST_TIMEOUTS


def test_counting_ends_with_its_block(searches: list[str]) -> None:
    timeouts = PatternTimeouts()
    for _ in range(MOST_TIMEOUTS):
        with timeouts.counting(Place()), pytest.raises(MetricError, match="takes too long"):
            found(SLOW, ANSWER)
    with timeouts.counting(Place()), pytest.raises(PatternGivenUpError, match=r"^the pattern .* is not tried again"):
        found(SLOW, ANSWER)
    with pytest.raises(MetricError, match="takes too long"):
        found(SLOW, ANSWER)


def test_one_module_alone_runs_patterns() -> None:
    folder = ROOT / "src" / "agenteval"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert [path for path, text in texts.items() if "import regex" in text] == [Path(patterns.__file__)]
    compiling = {path for path, text in texts.items() if "re.compile(pattern)" in text or "re.compile(value)" in text}
    assert compiling == {folder / "core" / "text.py"}


# Patterns that a suite must not have


@pytest.mark.parametrize("pattern", ["", "a", "(?i)a{3,5}|b", "(ab){5000}", r"(?<=a)b(?=c)", "a{0,60000}", "(a+)+"])
def test_patterns_that_can_be_used(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing )"),
        ("a{1,99999999999999999999}", "too large"),
        ("(?:" * 5_000 + "a" + ")" * 5_000, "recursion"),
        (
            "(a{65000}){65000}",
            f"a part of it requires 4,225,000,000 characters, at most {LONGEST_REQUIRED:,} are allowed",
        ),
        ("b|(?:a{1000}){1000}", "requires 1,000,000"),
        ("(?=(a{65000}){65000})b", "requires"),
        ("(?!(a{65000}){65000})b", "requires"),
        ("(b)(?(1)a|(?:a{65000}){65000})", "requires"),
        ("(?>(a{65000}){65000})?", "requires"),
        ("((a{65000}){65000})*", "requires"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, problem: str) -> None:
    assert problem in str(pattern_problem(pattern))
