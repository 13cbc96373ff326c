"""Every field that a change can write: who decides it, and that the code keeps what the tables say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.run.base_commit import Checkout
from agenteval.run.config import Config
from agenteval.run.config_file import OBJECT_KEYS, ConfigFile, read_config_file, written_settings
from agenteval.run.plan import PlannedCase
from agenteval.run.rules.differences import STANDINGS, Standing, pair
from agenteval.run.rules.under_base import agent_differences, limited, setting_differences
from agenteval.run.rules.versions import Versions, suite_version
from agenteval.suite.evaluation import Aggregate, Criteria, Evaluation
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite, Target, Turn

METRIC = MetricConfig("m", "equality", "standard")

# Another value than the default, by the dotted path of the key.
WRITTEN: dict[str, Any] = {
    "personas": {"beginner": ["a"]},
    "tags": {"short": ["a"]},
    "iterations": 3,
    "concurrency": 2,
    "case_timeout": 5,
    "time_limit": 60,
    "pass_env": ["KEY"],
    "secrets": ["NAME"],
    "limits.memory_mb": 100,
    "limits.cpu_s": 5,
    "max_answer_bytes": 2000,
    "templates.comment": "c.j2",
    "templates.summary": "s.j2",
    "reports": [],
    "gate.fail_on": ["errors"],
    "gate.max_error_rate": 0.5,
    "gate.require": "no-worse-than 0.03",
    "gate.pairs": 8,
    "gate.first": "whole",
    "gate.on_missing_baseline": "fail",
    "gate.resources": ["cost"],
    "gate.metrics": {"m": {"gating": False}},
    "gate.strict": True,
    "gate.must_pass": ["a"],
    "gate.quarantine": [{"case": "a", "until": "2999-01-01"}],
    "llm.max_calls": 1,
    "llm.max_cost_usd": 1.0,
    "llm.cache": False,
    "llm.cache_agents": True,
    "llm.concurrency": 1,
    "llm.requests_per_minute": 1,
    "llm.retries": 1,
    "llm.backoff": 3.0,
    "llm.timeout": 5,
}
# Reporters of other packages would have to be installed.
EMPTY = {"reports"}

AGENTS: dict[str, Any] = {
    "kind": "plugin",
    "target": "other.py:reply",
    "directory": "/here/other",
    "timeout_s": 5.0,
    "concurrency": 2,
    "retries": 3,
    "config": {"a": 1},
    "env": {"A": "1"},
    "options": {"interpreter": "python3"},
    "where": "agenteval.yaml:9",
    "function": print,
    "control": "main",
}

CASES: dict[str, Any] = {
    "turns": (Turn("x", metrics=(METRIC,)),),
    "tags": ("a",),
    "cluster": "c",
    "iterations": 5,
    "metrics": (METRIC,),
    "strict": True,
    "persona": "p",
    "aggregate": Aggregate(),
    "id": "new",
    "name": "new",
    "line": 3,
    "target": Target("agent", "other"),
}

SUITES: dict[str, Any] = {
    "iterations": 3,
    "retrieval_tools": frozenset({"search"}),
    "metrics": (METRIC,),
    "aggregate": Aggregate(),
    "evaluation": Evaluation(criteria=Criteria(all_successful=True)),
}


def of_kind(kind: str) -> dict[str, Standing]:
    """Who decides the values of one kind, by their name."""
    found = ((name.partition("."), standing) for name, standing in STANDINGS.items())
    return {name: standing for (of, _, name), standing in found if of == kind}


def names(model: type) -> set[str]:
    return {field.name for field in fields(model) if not field.name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("setting", {*written_settings(ConfigFile()), *OBJECT_KEYS}),
        ("agent", {name.removesuffix("_s") for name in names(AgentSpec)}),
        ("suite", names(Suite)),
        ("case", names(Case)),
    ],
)
def test_each_field_has_an_entry(kind: str, known: Collection[str]) -> None:
    assert set(of_kind(kind)) == set(known)


def test_what_the_base_does_not_decide_has_a_reason() -> None:
    assert [name for name, standing in STANDINGS.items() if standing.by != "base" and not standing.why] == []


def content(name: str) -> dict[str, Any]:
    section, _, key = name.partition(".")
    return {section: {key: WRITTEN[name]} if key else WRITTEN[name]}


@pytest.mark.parametrize("name", sorted(of_kind("setting").keys() - set(OBJECT_KEYS)))
def test_a_setting_is_listed_unless_it_cannot_matter(tmp_path: Path, name: str) -> None:
    path = tmp_path / "agenteval.yaml"
    path.write_text("", encoding="utf-8")
    before = read_config_file(path)
    path.write_text(yaml.safe_dump(content(name)), encoding="utf-8")
    after = read_config_file(path)
    assert name in EMPTY or before.written[name] != after.written[name]
    found = [
        (item.setting, item.effect)
        for of_run in (True, False)
        for item in setting_differences(before, after, of_run=of_run)
    ]
    by = of_kind("setting")[name].by
    assert found == ([] if by == "either" else [(name, "base" if by == "base" else "listed")])


PLACE = Checkout(Path("/here"), Path("/base"))


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_property_of_an_agent_is_listed_unless_it_cannot_matter(name: str) -> None:
    theirs = AgentSpec("python", "agent.py:reply", "/base")
    ours = (
        replace(theirs, directory="/here", **{name: AGENTS[name]})
        if name != "directory"
        else replace(theirs, directory=AGENTS[name])
    )
    case = Case("a", "a", (Turn("x"),))
    planned = [PlannedCase(Suite("s", "s", "holodeck", (case,)), case, ours, 1)]
    shown = agent_differences(planned, {"a": theirs}, PLACE, is_compared=True)
    found = [(item.setting, item.effect) for item in shown]
    by = of_kind("agent")[name.removesuffix("_s")].by
    effect = "base" if by == "base" else "listed"
    assert found == ([] if by == "either" else [(name.removesuffix("_s"), effect)])
    (item,) = limited(planned, {"a": theirs})
    assert (item.agent.timeout_s, item.agent.retries) == (theirs.timeout_s, theirs.retries)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_base_decides_a_property_of_a_case(name: str) -> None:
    theirs = Case("a", "a", (Turn("x"),))
    ours = replace(theirs, **{name: CASES[name]})
    (found, *_) = Versions(pair([ours], [theirs])).of(ours.id)
    if name == "turns":
        # A new metric is only reported.
        assert not any(metric.gating for turn in found.turns for metric in turn.metrics)
    elif name == "metrics":
        assert not any(metric.gating for metric in found.metrics)
    else:
        assert getattr(found, name) == getattr(theirs if of_kind("case")[name].by == "base" else ours, name)


@pytest.mark.parametrize("name", sorted(SUITES))
def test_the_base_decides_a_rule_of_a_suite(name: str) -> None:
    theirs = Suite("s", "s", "holodeck", ())
    ours = replace(theirs, **{name: SUITES[name]})
    found = suite_version(ours, theirs, Versions(pair([], [])))
    assert (getattr(found, name), of_kind("suite")[name].by) == (getattr(theirs, name), "base")


def test_recorded_answers_replace_no_live_agent() -> None:
    case = Case("a", "a", (Turn("x"),))
    planned = PlannedCase(Suite("s", "s", "holodeck", (case,)), case, AgentSpec("replay", "/here/r", "/here"), 1)
    agents = {"a": AgentSpec("python", "r", "/base")}
    for is_compared, effect in ((True, "unproven"), (False, "listed")):
        (found,) = agent_differences([planned], agents, PLACE, is_compared=is_compared)
        assert (found.setting, found.before, found.after, found.effect) == ("kind", "python", "replay", effect)


def test_cases_that_share_an_agent_still_share_it() -> None:
    cases = [Case(name, name, (Turn("x"),)) for name in ("a", "b", "new")]
    agent, theirs = AgentSpec("http", "http://a", "/here", timeout_s=90), AgentSpec("http", "http://a", "/base")
    suite = Suite("s", "s", "holodeck", tuple(cases))
    planned = [PlannedCase(suite, case, agent, 1) for case in cases]
    found = list(limited(planned, {"a": theirs, "b": theirs}))
    assert {id(item.agent) for item in found} == {id(found[0].agent)}
    assert found[0].agent.timeout_s is None


HELD = {"case": "a", "until": "2999-01-01"}


def config(folder: Path, **keys: Any) -> Config:
    path = folder / "agenteval.yaml"
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return read_config_file(path)


@pytest.mark.parametrize(
    ("before", "after", "setting", "loosens"),
    [
        ({}, {"fail_on": ["errors"]}, "gate.fail_on", True),
        ({"fail_on": ["errors"]}, {}, "gate.fail_on", False),
        ({"pairs": 8}, {}, "gate.pairs", False),
        ({"strict": True}, {}, "gate.strict", True),
        ({"must_pass": ["a"]}, {"must_pass": ["b"]}, "gate.must_pass", True),
        ({}, {"quarantine": [HELD]}, "gate.quarantine", True),
        ({}, {"metrics": {"bleu": {"gating": False}}}, "gate.metrics", True),
    ],
)
def test_a_setting_of_the_gate(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], setting: str, loosens: bool
) -> None:
    old, new = config(tmp_path, gate=before), config(tmp_path, gate=after)
    (found,) = setting_differences(old, new, of_run=True)
    assert (found.kind, found.setting, found.loosens, found.effect) == ("setting", setting, loosens, "base")
    assert found.before != found.after
    assert list(setting_differences(new, new, of_run=True)) == []


def test_the_judge_is_a_setting_of_suites(tmp_path: Path) -> None:
    old, new = config(tmp_path, judge="openai/gpt-4o"), config(tmp_path, judge="openai/gpt-4o-mini")
    (found,) = setting_differences(old, new, of_run=False)
    assert (found.setting, found.before, found.after) == ("judge", "openai/gpt-4o", "openai/gpt-4o-mini")
    assert list(setting_differences(old, old, of_run=False)) == []
