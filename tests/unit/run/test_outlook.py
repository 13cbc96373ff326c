"""What a first run records about the gate's later chances: the figures of `explain-gate`, never invented ones."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit import runs
from tests.unit.compare.gate_runs import compared, scored

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.power import detectable_multiple
from agenteval.results.model import Results
from agenteval.run.dry_run import explain
from agenteval.run.outlook import outlook_of

POLICY = ComparePolicy()


def varied(iterations: int = 3, cases: int = 30) -> Results:
    """A first run whose scores vary from iteration to iteration."""
    chance = random.Random(7)
    scores = [[round(chance.uniform(0.5, 1.0), 3) for _ in range(iterations)] for _ in range(cases)]
    return runs.results(*(scored(f"c{number:02}", *values) for number, values in enumerate(scores)))


def test_more_runs_find_smaller_drops() -> None:
    rows = outlook_of(varied(), POLICY)
    assert [row.runs for row in rows] == [1, 3, 5]
    drops = [row.drop for row in rows if row.drop is not None]
    assert drops == sorted(drops, reverse=True)
    assert drops[1] / drops[0] == pytest.approx(detectable_multiple(3) / detectable_multiple(1))


def test_the_figures_are_those_of_explain_gate() -> None:
    results = varied()
    power = explain(results, POLICY, datetime.now(UTC).date()).power
    assert {row.case_calls for row in outlook_of(results, POLICY)} == {power.case_calls}


def test_one_iteration_tells_nothing() -> None:
    assert outlook_of(varied(iterations=1), POLICY) == []


def test_too_few_cases_find_nothing_until_there_are_more_runs() -> None:
    few = outlook_of(varied(cases=1), POLICY)[0]
    assert few.too_few
    assert few.drop is None


@pytest.mark.parametrize("policy", [replace(POLICY, name="any-flip"), replace(POLICY, confirm="off")])
def test_other_policies_have_no_such_figures(policy: ComparePolicy) -> None:
    assert outlook_of(varied(), policy) == []


def test_a_compared_run_has_none() -> None:
    run = varied()
    comparison = compared(run, varied().model_copy(update={"run": run.run.model_copy(update={"id": "then"})}))
    assert outlook_of(run.model_copy(update={"comparison": comparison}), POLICY) == []
