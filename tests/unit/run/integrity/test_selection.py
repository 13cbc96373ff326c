"""The cases that a run selects by their names in the base commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support import case

from agenteval.run.config import Settings
from agenteval.run.context import RunContext
from agenteval.run.plan import Shard
from agenteval.run.resolve.draft import Draft, read_draft
from agenteval.run.rules.differences import Pairs, pair
from agenteval.run.rules.under_base import also_selected_by_base

RENAMED = {"agent.yaml::renamed": "c1"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    metric = {"type": "standard", "metric": "equality", "threshold": 1.0}
    cases = [case(name, name, name) for name in ("c0", "renamed", "c2", "x")]
    suite = {"agent": {"python": "agent:reply"}, "evaluations": {"metrics": [metric]}, "test_cases": cases}
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    return Settings(filter="::c")


def pairs_of(draft: Draft) -> Pairs:
    """Return the pairs with a base commit in which one case had another name."""
    ours = [item for suite in draft.spec.suites for item in suite.cases]
    return pair(ours, [replace(item, id=f"agent.yaml::{RENAMED.get(item.id, item.name)}") for item in ours])


def test_a_case_that_the_base_selects_runs_in_its_place(settings: Settings) -> None:
    draft = read_draft(settings, RunContext())
    chosen = also_selected_by_base(draft, pairs_of(draft))
    assert [item.case.name for item in draft.spec.cases] == ["c0", "c2"]
    assert [item.case.name for item in chosen.spec.cases] == ["c0", "renamed", "c2"]
    assert [item.case.name for item in chosen.left_out] == ["x"]
    assert chosen.spec.coverage.selected == 3
    assert also_selected_by_base(draft, Pairs()).spec.cases == draft.spec.cases


def test_the_first_shard_runs_it(settings: Settings) -> None:
    found = {}
    for index in (1, 2):
        draft = read_draft(replace(settings, shard=Shard(index, 2)), RunContext())
        chosen = also_selected_by_base(draft, pairs_of(draft))
        assert chosen.spec.shard is not None
        assert chosen.spec.shard.cases == ["agent.yaml::c0", "agent.yaml::c2", "agent.yaml::renamed"]
        found[index] = [item.case.name for item in chosen.spec.cases]
    assert sorted(name for names in found.values() for name in names) == ["c0", "c2", "renamed"]
    assert "renamed" in found[1]
