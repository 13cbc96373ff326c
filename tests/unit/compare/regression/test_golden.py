"""The arithmetic against the results of the program that the gate was simulated with."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.compare.regression.golden import World, digest, world
from tests.unit.compare.regression.worlds import Driver, evidence_of, scores_of

from agenteval.compare.regression.case_test import find_candidates, rerun_q, within_run_correlation
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.labels import compare_runs
from agenteval.compare.regression.model import Burden, Decision, Failures
from agenteval.compare.regression.power import difference_to_pool
from agenteval.compare.regression.runs import Layout, Run, layout_of
from agenteval.compare.regression.settings import GateSettings

GOLDEN: dict[str, list[Any]] = json.loads(Path("tests/data/gate/golden.json").read_text())
SETTINGS = GateSettings(draws=999, exact_limit=2048, head_to_head_calls=0)


def settings_of(number: int) -> GateSettings:
    settings = replace(SETTINGS, head_to_head_calls=0 if number % 2 else 60)
    # Every fifth world repeats its answers. Its golden result has repeats of all changed cases.
    return settings if number % 5 else replace(settings, max_cases=24)


def read(made: World) -> tuple[Layout, Run, list[Run]]:
    layout = layout_of(
        evidence_of(made.first, made.pool, made.thresholds, seed=made.number, units=made.units), mirrored=False
    )
    return layout, layout.read(scores_of(made.first)), [layout.read(scores_of(run)) for run in made.pool]


def test_screens() -> None:
    for golden in GOLDEN["screens"]:
        made = world(golden["n"])
        assert digest(made) == golden["digest"], "this version of NumPy draws other numbers"
        layout, first, pool = read(made)
        test = compare_runs([first], pool, layout.unit_of, (made.number, 1), SETTINGS)
        assert test.p.tolist() == pytest.approx(golden["p"], abs=1e-12), made.number
        found = find_candidates(first, pool, layout, SETTINGS)
        assert [(found.case, found.metric) for found in found] == [(c, m) for _, c, m in golden["candidates"]]
        assert [found.p for found in found] == pytest.approx([p for p, _, _ in golden["candidates"]], abs=1e-11)
        if golden["correlation"] is not None:
            assert within_run_correlation(pool, 0, (), layout, SETTINGS) == golden["correlation"], made.number
        for metric, bound in enumerate(golden["bounds"]):
            if bound is not None:
                alone = np.arange(len(layout.case_ids))
                found_bound = difference_to_pool(first, pool, metric, 1.0, alone)
                assert found_bound is not None
                assert found_bound.bound == pytest.approx(min(1.0, bound), abs=3e-3)


@pytest.mark.long
def test_side_by_side() -> None:
    for golden in GOLDEN["sides"]:
        made = world(golden["n"])
        layout, _, _ = read(made)
        runs, (rows, count) = 1 + made.number % 4, (list(range(len(made.first[0]))), made.first[0].shape[1])
        agents = made.agent(is_control=False), made.agent(is_control=True)
        own, other = ([layout.read(scores_of(agent(rows, count))) for _ in range(runs)] for agent in agents)
        test = compare_runs(own, other, layout.unit_of, (made.number, 10 + runs - 1), SETTINGS)
        assert test.p.tolist() == pytest.approx(golden["p"], abs=1e-12), made.number
        assert test.differences.tolist() == pytest.approx(golden["difference"], abs=1e-12)


def test_reruns_of_cases() -> None:
    for current, control, repeats, correlation, q in GOLDEN["cases"]:
        assert rerun_q(Failures(current, repeats), Failures(control, repeats), correlation) == pytest.approx(
            q, abs=1e-12
        )


def decision_on(golden: dict[str, Any]) -> Decision:
    made = world(golden["n"])
    assert digest(made) == golden["digest"], "this version of NumPy draws other numbers"
    burden = {
        None: None,
        "means": Burden(means={"m0": 0.2}),
        "cases": Burden(cases={("m0", "case-0000"): 0.8}),
    }[golden["memory"]]
    evidence = evidence_of(made.first, made.pool, made.thresholds, seed=made.number, units=made.units)
    driver = Driver({"current": made.agent(is_control=False), "control": made.agent(is_control=True)})
    return driver.run(decide(evidence, settings_of(made.number), burden))


@pytest.mark.long
def test_decisions() -> None:
    wrong: dict[int, object] = {}
    for golden in GOLDEN["decisions"]:
        decision = decision_on(golden)
        ids = [f"case-{case:04}" for _, case in golden["cases"]]
        metrics = [f"m{metric}" for metric, _ in golden["cases"]]
        expected = (
            golden["verdict"],
            [f"m{metric}" for metric in golden["means"]],
            sorted(zip(metrics, ids, strict=True)),
            golden["look"],
            golden["deterministic"],
        )
        found = (
            decision.verdict,
            [finding.metric for finding in decision.metrics if finding.proven],
            sorted((case.metric, case.case_id) for case in decision.cases if case.proven),
            decision.looks[-1].runs if decision.looks else 0,
            decision.repeats,
        )
        if found != expected or (golden["p"] is not None and abs(decision.looks[-1].p - golden["p"]) > 1e-12):
            wrong[golden["n"]] = (expected, found, golden["p"], decision.looks[-1:])
        elif golden["runs"] != pytest.approx(runs_of(decision, world(golden["n"])), abs=1e-5):
            wrong[golden["n"]] = (golden["runs"], decision.cost)
    assert wrong == {}


def runs_of(decision: Decision, made: World) -> float:
    return decision.cost.calls / made.first[0].size


def test_golden_results_reach_every_stage() -> None:
    stages = Counter(
        (golden["verdict"], golden["look"] > 0, golden["deterministic"], bool(golden["cases"]))
        for golden in GOLDEN["decisions"]
    )
    assert len(stages) >= 6
    assert min(stages.values()) >= 4
