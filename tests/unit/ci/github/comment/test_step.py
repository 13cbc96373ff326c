"""The name of the step that writes a section."""

from __future__ import annotations

import json
from typing import Any

from agenteval.github.comment import StepName, leg_of

LEGS = {
    "null": (),
    "[1]": (),
    '{"os": "ubuntu", "python": 3.12}': ("ubuntu", "3.12"),
    '{"python": 3.12, "os": "ubuntu"}': ("ubuntu", "3.12"),
    '{"beta": true, "none": null, "list": ["a", 1]}': ("true", "a", "1"),
    # The number of cases changes with the suite, and the leg stays the same.
    '{"suite": {"id": "agents-a", "path": "agents/a", "cases": 3}}': ("agents-a",),
    '{"suite": {"path": "agents/a", "cases": 3}}': ("3", "agents/a"),
    '{"suite": {"id": "", "path": "agents/a"}}': ("", "agents/a"),
}


def test_the_values_of_a_matrix() -> None:
    assert {text: tuple(shown for _, shown in leg_of(json.loads(text))) for text in LEGS} == LEGS


def test_no_two_legs_have_one_section() -> None:
    legs: list[dict[str, Any]] = [
        {},
        {"agent": "a"},
        # Legs that `include` adds need not have the same keys.
        {"suite": "a"},
        {"agent": ["a", "b"], "suite": "c"},
        {"agent": ["a"], "suite": ["b", "c"]},
        {"agent": {"suite": "a"}},
        {"agent.suite": "a"},
        {"agent": {"id": "a"}},
        *({"agent": value} for value in (1, "1", True, "true", 1.5, "a b", "a, b", "A")),
        {"agent": 'a"], ["suite", "b'},
        {"agent": "a", "suite": "b"},
    ]

    keys = {json.dumps(leg): StepName("ci", "evaluate", leg_of(leg)).key for leg in legs}

    assert len(set(keys.values())) == len(legs), keys
    # A value that is null is as good as none.
    assert leg_of({"agent": "a", "suite": None}) == leg_of({"agent": "a"})


def test_steps_jobs_and_legs_have_keys_and_titles_of_their_own() -> None:
    first, second = "__org_agenteval-action", "__org_agenteval-action_2"
    titles = {
        StepName("ci", "evaluate", (), first): "evaluate",
        StepName("ci", "evaluate", (), second): "evaluate · step 2",
        StepName("ci", "evaluate", (), "judge"): "evaluate · judge",
        StepName("ci", "evaluate", leg_of({"os": "ubuntu", "python": 3.12}), first): "evaluate (ubuntu, 3.12)",
        StepName("ci", "evaluate", leg_of({"os": "ubuntu", "python": 3.13}), first): "evaluate (ubuntu, 3.13)",
        StepName("ci", "judge", (), first): "judge",
        StepName("nightly", "judge", (), first): "judge",
        StepName(): "",
    }

    assert {name: name.title for name in titles} == titles
    assert len({name.key for name in titles}) == len(titles)


def test_a_long_leg_has_a_short_title() -> None:
    leg = leg_of({"model": "x" * 5_000})

    assert len(StepName("ci", "evaluate", leg).title) == 100
