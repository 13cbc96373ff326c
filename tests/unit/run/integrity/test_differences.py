"""How the cases and metrics of the change differ from those of the base commit."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.llm.models import ModelSpec
from agenteval.run.rules.differences import case_differences, case_document, diff, pair, shown
from agenteval.suite.model import Case, MetricConfig, Turn

BASE: dict[str, Any] = {"id": "m", "type": "equality", "kind": "standard", "threshold": 0.8}
JUDGE = ModelSpec("openai", "gpt-4o", api_key="sk-geheim-12345678")


def metric(**changes: Any) -> MetricConfig:
    return MetricConfig(**{**BASE, **changes})


def case(name: str = "a", text: str = "question", metrics: tuple[MetricConfig, ...] = (), **more: Any) -> Case:
    turn = Turn(input=text, ground_truth="answer", metrics=metrics or (metric(),))
    return Case(id=name, name=name, turns=(turn,), **more)


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (metric(threshold=0.5), ("threshold", "0.8", "0.5", True)),
        (metric(threshold=0.9), ("threshold", "0.8", "0.9", False)),
        (metric(threshold=None), ("threshold", "0.8", None, True)),
        (metric(gating=False), ("gating", "true", "false", True)),
        (metric(type="bleu"), ("type", "equality", "bleu", False)),
        (metric(options={"prompt": "new\nline"}), ("prompt", None, "new line", False)),
        (metric(options={"model": JUDGE}), ("model", None, "openai/gpt-4o", False)),
        (None, (None, "there", None, True)),
    ],
)
def test_a_change_of_a_metric(after: MetricConfig | None, change: tuple[Any, ...]) -> None:
    assert changes((metric(),), (after,) if after else ()) == [change]


def test_an_unchanged_metric_and_a_new_one() -> None:
    assert changes((metric(),), (metric(where=case().turns[0].metrics[0].where),)) == []
    assert changes((), (metric(),)) == [(None, None, "there", False)]


def changes(before: tuple[MetricConfig, ...], after: tuple[MetricConfig, ...]) -> list[Any]:
    documents = [case_document(Case("a", "a", (Turn("x", metrics=metrics),)), 1) for metrics in (before, after)]
    return [(item.setting, item.before, item.after, item.loosens) for item in diff(*documents)]


def differences(ours: list[Case], theirs: list[Case], passing: set[str] | None = None) -> list[Any]:
    numbers = [{item.id: item.iterations or 1 for item in cases} for cases in (ours, theirs)]
    return list(case_differences(pair(ours, theirs), passing or set(), *numbers))


def test_equal_changes_of_several_cases_are_one_difference() -> None:
    looser = (metric(threshold=0.1),)
    ours = [case("a", metrics=looser), case("b", metrics=looser), case("c", metrics=(metric(threshold=0.2),))]
    found = differences(ours, [case("a"), case("b"), case("c")])
    assert [(item.metric, item.case, item.cases, item.after, item.loosens) for item in found] == [
        ("m", None, 2, "0.1", True),
        ("m", "c", 0, "0.2", True),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (case(text="other"), case(), ("edited", "input", "question", "other", "base")),
        (case(strict=False), case(strict=True), ("case", "strict", "true", "false", "base")),
        (case(iterations=1), case(iterations=5), ("case", "iterations", "5", "1", "base")),
        (case("b"), case("a"), ("renamed", None, "a", "b", "paired")),
    ],
)
def test_a_change_of_a_case(ours: Case, theirs: Case, expected: tuple[Any, ...]) -> None:
    (found,) = differences([ours], [theirs])
    assert (found.kind, found.setting, found.before, found.after, found.effect) == expected


def test_only_a_removed_case_that_passed_is_unproven() -> None:
    found = differences([], [case("a"), case("b", "other")], {"a"})
    assert [(item.kind, item.case, item.effect) for item in found] == [
        ("removed", "a", "unproven"),
        ("removed", "b", "listed"),
    ]
    assert all(item.fingerprint for item in found)


def test_a_value_of_the_program_shows_no_secret() -> None:
    assert "geheim" not in str(shown({"model": JUDGE}))
    assert shown({"model": JUDGE}) != shown({"model": None})
