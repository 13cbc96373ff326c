from __future__ import annotations

import gc
import weakref

from tests.unit.report import samples

from agenteval.report.view.view import cached_per_run, metric_errors
from agenteval.results.model import Results


def _named(name: str) -> Results:
    return samples.results(samples.suite(samples.passed_case(name)))


def test_a_run_is_looked_at_once_until_another_one_is_asked_about() -> None:
    looked: list[str] = []

    @cached_per_run
    def first_name(results: Results) -> str:
        looked.append(results.suites[0].cases[0].name)
        return looked[-1]

    one, other = _named("one"), _named("other")
    assert [first_name(run) for run in (one, one, other, other, one)] == ["one", "one", "other", "other", "one"]
    assert looked == ["one", "other", "one"]


def test_an_equal_run_is_another_one() -> None:
    looked: list[Results] = []
    seen = cached_per_run(looked.append)
    run = _named("one")
    seen(run)
    seen(run.model_copy())
    assert len(looked) == 2


def test_the_run_itself_is_not_kept() -> None:
    run = _named("one")
    kept = weakref.ref(run)
    assert metric_errors(run) == ()
    del run
    gc.collect()
    assert kept() is None


def test_errors_of_metrics_belong_to_the_run_that_is_asked_about() -> None:
    broken = samples.score("meteor", None, error="no such word list")
    case = samples.case("one", samples.iteration(samples.turn("q", "a", "a", broken)))
    run = samples.results(samples.suite(case))
    expected = ("meteor could not be computed in 1 case: no such word list",)
    assert [metric_errors(each) for each in (run, _named("two"), run)] == [expected, (), expected]
