"""Which cases a staged first run asks once: only where nothing but the comparison needs their iterations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import case, write_suite
from tests.unit import runs

from agenteval.compare.policy import ComparePolicy
from agenteval.core.errors import ConfigError
from agenteval.results.case import CaseResult
from agenteval.results.comparison import PoolEntry
from agenteval.results.model import Results
from agenteval.run.baseline import FoundBaseline
from agenteval.run.git import Provenance
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.run_key import changes, conditions
from agenteval.run.settings import Settings
from agenteval.run.staged import staged

K, RUNS = 3, 4
SETTINGS = Settings(suites=(Path("agent.yaml"),), quiet=True)
PULL_REQUEST = Provenance(commit="d" * 40, ref="refs/pull/7/merge", workflow_run_id="1")
NAMES = ("a", "b", "c")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path, [case(name) for name in NAMES], agent={"command": ["cat"]})
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **gate: Any) -> None:
    settings = {"iterations": K, "gate": {"staged": True, **gate}}
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def specification(settings: Settings = SETTINGS) -> RunSpec:
    """A run of a pull request whose baseline has four whole runs in which the case c alone varies."""
    spec = replace(resolve_run(settings), provenance=PULL_REQUEST)
    return replace(spec, baseline=FoundBaseline(baseline(spec)))


def baseline(spec: RunSpec) -> Results:
    prints = {item.case.id: item.case.fingerprints for item in spec.cases}
    metric = {case_id: next(iter(known.metrics)) for case_id, known in prints.items()}

    def result(case_id: str, *scores: float) -> CaseResult:
        made = runs.case(case_id.rpartition("::")[2], "passed", [{metric[case_id]: score} for score in scores])
        return made.model_copy(update={"id": case_id})

    def entry(number: int) -> PoolEntry:
        cases = [result(case_id, 1.0, 1.0, float(not case_id.endswith("c"))) for case_id in prints]
        run = runs.results(*cases, run_id=f"base-{number}")
        known = {
            case_id: scored.model_copy(
                update={"fingerprint": prints[case_id].question, "metrics": dict(prints[case_id].metrics)}
            )
            for case_id, scored in run.pool[0].cases.items()
        }
        return run.pool[0].model_copy(update={"cases": known})

    newest = runs.results(*(result(case_id, 1.0, 1.0, 1.0) for case_id in prints), run_id=f"base-{RUNS}")
    return newest.model_copy(update={"pool": [entry(number) for number in range(1, RUNS + 1)]})


def once(spec: RunSpec, settings: Settings = SETTINGS) -> set[str]:
    """The names of the cases that are asked once."""
    return {item.case.name for item in staged(spec, settings).cases if item.asked == 1}


def test_settled_cases_of_a_pull_request_are_asked_once(folder: Path) -> None:
    spec = staged(specification(), SETTINGS)
    assert {item.case.name: (item.iterations, item.asked) for item in spec.cases} == {
        "a": (K, 1),
        "b": (K, 1),
        "c": (K, K),
    }


def test_runs_that_are_whole(folder: Path) -> None:
    spec = specification()
    assert spec.baseline is not None
    shortened = spec.baseline.results.model_copy(update={"pool": spec.baseline.results.pool[:2]})
    whole = replace(SETTINGS, is_whole=True)
    branch = Provenance(commit="d" * 40, ref="refs/heads/main", workflow_run_id="1")
    laptop = replace(branch, workflow_run_id=None)
    off = replace(spec.compare, staged=False)
    table = {
        "the option is off": (replace(spec, compare=off), SETTINGS),
        "nothing to compare with": (replace(spec, baseline=None), SETTINGS),
        "a run that makes a pool": (spec, whole),
        "the base branch": (replace(spec, provenance=branch), SETTINGS),
        "a new commit of the base branch on a laptop": (replace(spec, provenance=laptop), SETTINGS),
        "nothing can run again": (replace(spec, compare=spec.compare.without_confirmation()), SETTINGS),
        "a short pool": (replace(spec, baseline=FoundBaseline(shortened)), SETTINGS),
    }
    assert [name for name, given in table.items() if once(*given)] == []
    uncommitted = replace(laptop, commit=spec.baseline.results.run.commit)
    assert once(replace(spec, provenance=uncommitted)) == {"a", "b"}


def test_cases_that_are_whole(folder: Path) -> None:
    spec = specification()
    first, *others = spec.cases
    assert spec.baseline is not None
    table = {
        "edited": replace(first, case=replace(first.case, turns=(replace(first.case.turns[0], input="new"),))),
        "new": replace(first, case=replace(first.case, id="agent.yaml::new")),
        "recorded": replace(first, agent=replace(first.agent, kind="replay")),
        "a metric of all iterations": replace(first, case=replace(first.case, metrics=first.case.turns[0].metrics)),
    }
    wrong = [name for name, item in table.items() if once(replace(spec, cases=(item, *others))) != {"b"}]
    assert not wrong
    configure(folder, must_pass=["a"])
    assert once(specification()) == {"b"}
    configure(folder, strict=True)
    assert once(specification()) == set()


def test_a_shard_reads_the_baseline_of_the_whole_run(folder: Path) -> None:
    spec = specification()
    shard = replace(spec, baseline=None, baseline_of_whole=spec.baseline)
    assert once(shard) == {"a", "b"}


def test_a_run_is_resumed_only_with_the_same_iterations(folder: Path) -> None:
    spec = specification()
    before, now = (conditions(make_plan(item)) for item in (spec, staged(spec, SETTINGS)))
    assert list(changes(before, now)) == ["the choice of settled cases of agent.yaml has changed"]
    assert list(changes(now, now)) == []


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ({"confirm": "off"}, "`staged` needs `policy: statistics` and `confirm: against-base`; remove it"),
        ({"confirm": "rerun"}, "`staged` needs `policy: statistics` and `confirm: against-base`; remove it"),
        ({"policy": "any-flip"}, "`staged` needs `policy: statistics` and `confirm: against-base`; remove it"),
        ({"require": "no-worse-than"}, "`staged` excludes too little for `require`; remove one of them"),
    ],
)
def test_settings_that_exclude_each_other(folder: Path, gate: dict[str, Any], problem: str) -> None:
    configure(folder, **gate)
    with pytest.raises(ConfigError) as error:
        resolve_run(SETTINGS)
    (found,) = error.value.problems
    assert found.message == problem


def test_it_is_off_by_default() -> None:
    assert not ComparePolicy().staged
