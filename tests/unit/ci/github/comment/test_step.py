"""The name of the step that writes a section."""

from __future__ import annotations

import json

from agenteval.ci.github.comment.step import StepName, leg_of

LEGS = {
    "null": (),
    "": (),
    "{": (),
    "[1]": (),
    "[" * 100_000: (),
    '{"os": "ubuntu", "python": 3.12}': ("ubuntu", "3.12"),
    '{"python": 3.12, "os": "ubuntu"}': ("ubuntu", "3.12"),
    '{"beta": true, "none": null, "list": ["a", 1]}': ("true", "a", "1"),
    # The number of cases changes with the suite, and the leg stays the same.
    '{"suite": {"id": "agents-a", "path": "agents/a", "cases": 3}}': ("agents-a",),
    '{"suite": {"path": "agents/a", "cases": 3}}': ("3", "agents/a"),
    '{"suite": {"id": "", "path": "agents/a"}}': ("", "agents/a"),
}


def test_the_values_of_a_matrix() -> None:
    assert {text: leg_of(text) for text in LEGS} == LEGS


def test_steps_jobs_and_legs_have_keys_and_titles_of_their_own() -> None:
    first, second = "__org_agenteval-action", "__org_agenteval-action_2"
    titles = {
        StepName("ci", "evaluate", (), first): "evaluate",
        StepName("ci", "evaluate", (), second): "evaluate · step 2",
        StepName("ci", "evaluate", (), "judge"): "evaluate · judge",
        StepName("ci", "evaluate", ("ubuntu", "3.12"), first): "evaluate (ubuntu, 3.12)",
        StepName("ci", "evaluate", ("ubuntu", "3.13"), first): "evaluate (ubuntu, 3.13)",
        StepName("ci", "judge", (), first): "judge",
        StepName("nightly", "judge", (), first): "judge",
        StepName(): "",
    }

    assert {name: name.title for name in titles} == titles
    assert len({name.key for name in titles}) == len(titles)


def test_a_long_leg_has_a_short_title() -> None:
    leg = leg_of(json.dumps({"model": "x" * 5_000}))

    assert len(StepName("ci", "evaluate", leg).title) == 100
