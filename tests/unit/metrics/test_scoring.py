"""From a metric's outcome to a score: inapplicable metrics, errors, and verdicts."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from agenteval.core.errors import AgentEvalError
from agenteval.metrics.base import Metric, MetricError, Observation, Outcome
from agenteval.metrics.code import CodeGrader, CustomFunction, UserMetric
from agenteval.metrics.resources import Resources
from agenteval.metrics.scoring import MetricCatalog, score_turn
from agenteval.metrics.text import Numeric, PatternTimeouts
from agenteval.results.case import Score
from agenteval.suite.model import MetricConfig

NO_RESOURCES = cast(Resources, None)


class Shelf(MetricCatalog):
    """A catalog of given metrics."""

    def __init__(self, metrics: dict[str, Metric]) -> None:
        self._metrics = metrics
        self.timeouts = PatternTimeouts()

    def get(self, config: MetricConfig) -> Metric:
        return self._metrics[config.type]


@dataclass(frozen=True)
class Probe:
    """A metric that returns a given outcome."""

    find: Callable[[Observation], Outcome]
    requires: frozenset[str] = frozenset()

    def measure(self, observation: Observation) -> Outcome:
        return self.find(observation)


@dataclass(frozen=True)
class SlowProbe:
    """The same metric, asynchronous."""

    find: Callable[[Observation], Any]
    requires: frozenset[str] = frozenset()

    async def measure(self, observation: Observation) -> Outcome:
        outcome: Outcome = await self.find(observation)
        return outcome


def config(type_: str = "probe", **options: Any) -> MetricConfig:
    return MetricConfig(id=options.pop("id", type_), type=type_, kind="standard", **options)


def observation(response: str = "r", ground_truth: str | None = "g", **more: Any) -> Observation:
    return Observation(input="q", response=response, ground_truth=ground_truth, **more)


def score(metric: Metric, seen: Observation | None = None, **options: Any) -> Score:
    (found,) = asyncio.run(score_turn([config(**options)], seen or observation(), Shelf({"probe": metric})))
    return found


def always(value: float, passed: bool | None = None) -> Probe:
    return Probe(lambda _: Outcome(value, passed=passed))


def failing(*errors: Exception, then: float = 1.0) -> Probe:
    """A metric that raises given errors in turn, then returns an outcome."""
    left: Iterator[Exception] = iter(errors)

    def find(_: Observation) -> Outcome:
        for error in left:
            raise error
        return Outcome(then)

    return Probe(find)


class TestVerdict:
    @pytest.mark.parametrize(
        ("value", "own", "threshold", "passed"),
        [
            (0.5, None, None, None),
            (0.5, True, None, True),
            (1.0, False, None, False),
            (0.5, None, 0.5, True),
            (0.49, None, 0.5, False),
            (1.0, False, 0.5, True),
            (0.0, True, 0.5, False),
            (0.0, False, 0.0, None),
            (-1e-12, None, 0.0, None),
            (1.0000000000000004, None, 1.0, True),
            (1.0, None, 1.1, False),
        ],
    )
    def test_a_threshold_overrules_the_metric(
        self, value: float, own: bool | None, threshold: float | None, passed: bool | None
    ) -> None:
        found = score(always(value, own), threshold=threshold)
        assert (found.status, found.passed, found.threshold) == ("scored", passed, threshold)


class TestRange:
    @pytest.mark.parametrize(
        ("value", "error"),
        [
            (1.01, "the score 1.01 is outside 0..1"),
            (-0.01, "the score -0.01 is outside 0..1"),
            (5.0, "the score 5 is outside 0..1"),
            (math.nan, "the score is nan, not a number from 0 to 1"),
            (math.inf, "the score is inf, not a number from 0 to 1"),
            (-math.inf, "the score is -inf, not a number from 0 to 1"),
        ],
    )
    def test_anything_else_is_an_error(self, value: float, error: str) -> None:
        found = score(always(value, passed=True), threshold=0.5)
        assert (found.status, found.score, found.passed, found.error) == ("error", None, None, error)


class TestNotApplicable:
    @pytest.mark.parametrize("scope", ["suite", "case", "turn"])
    def test_without_ground_truth_it_is_skipped(self, scope: Any) -> None:
        metric = Probe(lambda _: Outcome(1.0), requires=frozenset({"ground_truth"}))
        found = score(metric, observation(ground_truth=None), requested_by=scope, threshold=0.5)
        assert (found.status, found.threshold, found.reason) == ("skipped", 0.5, "the case has no ground_truth")

    @pytest.mark.parametrize("passages", [None, ()])
    @pytest.mark.parametrize(("scope", "status"), [("suite", "skipped"), ("case", "error"), ("turn", "error")])
    def test_without_passages_it_is_an_error_where_they_were_asked_for(
        self, scope: Any, status: str, passages: tuple[str, ...] | None
    ) -> None:
        metric = Probe(lambda _: Outcome(1.0), requires=frozenset({"retrieval_context"}))
        found = score(metric, observation(retrieval_context=passages), requested_by=scope)
        assert (found.status, found.score, found.passed) == (status, None, None)
        assert "no retrieval_context" in str(found.reason if status == "skipped" else found.error)


class TestResponsePath:
    @pytest.mark.parametrize("threshold", [None, 0.0, 0.5])
    @pytest.mark.parametrize("response", ["not json", "{}", '{"a": {}}', ""])
    def test_an_unreadable_answer_fails_with_any_threshold(self, response: str, threshold: float | None) -> None:
        found = score(always(1.0, passed=True), observation(response), response_path="a", threshold=threshold)
        assert (found.status, found.score, found.passed) == ("scored", 0.0, False)
        assert found.reason


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (MetricError("the judge is gone"), "the judge is gone"),
            (AgentEvalError("no"), "no"),
            (ValueError("boom"), "ValueError: boom"),
            (KeyError("x"), "KeyError: 'x'"),
            (TimeoutError("upstream"), "TimeoutError: upstream"),
            (RecursionError(), "RecursionError: "),
        ],
    )
    @pytest.mark.parametrize("slow", [False, True])
    def test_a_broken_metric_is_an_error_of_its_own(self, error: Exception, text: str, slow: bool) -> None:
        async def find(_: Observation) -> Outcome:
            raise error

        found = score(SlowProbe(find) if slow else failing(error), threshold=0.5)
        assert (found.status, found.score, found.passed, found.error) == ("error", None, None, text)
        assert found.threshold == 0.5

    def test_a_time_limit_ends_an_attempt(self) -> None:
        async def never(_: Observation) -> Outcome:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        found = score(SlowProbe(never), timeout_s=0.001)
        assert (found.status, found.error) == ("error", "no result within 0.001 s")

    def test_a_metric_in_user_code_has_a_time_limit_of_its_own(self) -> None:
        async def never(_: Observation) -> Outcome:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        class UserCode(SlowProbe):
            default_limit_s = 0.001

        assert score(UserCode(never)).error == "no result within 0.001 s"
        assert score(UserCode(never), timeout_s=0.002).error == "no result within 0.002 s"
        assert {metric.default_limit_s for metric in (CodeGrader, CustomFunction, UserMetric)} == {300.0}


class TestLongAnswers:
    def test_others_go_on_while_one_is_measured(self) -> None:
        others_went_on = threading.Event()

        def wait_for_others(_: Observation) -> Outcome:
            return Outcome(1.0 if others_went_on.wait(timeout=60) else 0.0)

        async def run() -> list[Score]:
            asyncio.get_running_loop().call_later(0.01, others_went_on.set)
            shelf = Shelf({"probe": Probe(wait_for_others)})
            return await score_turn([config()], observation("word " * 100_000), shelf)

        (found,) = asyncio.run(run())
        assert found.score == 1


class TestOrderAndDetails:
    def test_scores_come_in_the_order_of_the_suite(self) -> None:
        async def later(_: Observation) -> Outcome:
            await asyncio.sleep(0)
            return Outcome(0.5)

        shelf = Shelf({"slow": SlowProbe(later), "fast": always(1.0)})
        configs = [config("slow", id="a"), config("fast", id="b"), config("slow", id="c")]
        found = asyncio.run(score_turn(configs, observation(), shelf))
        assert [(item.id, item.score) for item in found] == [("a", 0.5), ("b", 1.0), ("c", 0.5)]


class TestCatalog:
    def test_a_metric_is_built_once_with_its_options(self) -> None:
        catalog = MetricCatalog(NO_RESOURCES)
        strict = config("numeric", options={"absolute_tolerance": 0.0})
        loose = config("numeric", options={"absolute_tolerance": 5.0})
        assert catalog.get(strict) is catalog.get(strict)
        assert catalog.get(strict) == Numeric(absolute_tolerance=0.0)
        assert catalog.get(loose) == Numeric(absolute_tolerance=5.0)
