"""``evaluate`` in programs: agents of every kind, event loops, threads, signals, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, case, echo_agent, eventually, python_program, write_suite

from agenteval import (
    AgentSpec,
    Case,
    CaseMetric,
    ConfigError,
    InfrastructureError,
    Limits,
    Metric,
    MetricConfig,
    Observation,
    Outcome,
    Reply,
    Request,
    Resources,
    Suite,
    Turn,
    evaluate,
    evaluate_async,
    load_suites,
    read_results,
)

ONE_EACH = "; it must return a list with one outcome per observation"
NO_JSON = "JSON cannot express a value: Object of type object is not JSON serializable"
EQUALITY = MetricConfig(id="equality", type="equality", kind="standard")


def suite(*texts: str, metrics: tuple[MetricConfig, ...] = (EQUALITY,)) -> Suite:
    """A suite that an echo passes."""
    cases = (Case(f"s::{text}", text, (Turn(text, ground_truth=text, metrics=metrics),)) for text in texts)
    return Suite("s", "s", "python", tuple(cases))


def echo(question: str) -> str:
    return question


async def async_echo(question: str) -> str:
    await asyncio.sleep(0)
    return question


def request_echo(request: Request) -> Reply:
    return Reply(request.input, metadata={"session": request.session})


class Instance:
    async def __call__(self, request: Request) -> str:
        return request.input


def awaitable(question: str) -> Any:
    return async_echo(question)


@pytest.mark.parametrize("agent", [echo, async_echo, request_echo, Instance(), awaitable, lambda q: q])
def test_functions_of_every_kind_answer(agent: Any) -> None:
    outcome = evaluate(suite("a", "b"), agent=agent)
    assert (outcome.gate.passed, outcome.exit_status, outcome.results.summary.passed) == (True, 0, 2)


def raising(question: str) -> str:
    raise LookupError(f"nothing about {question}")


def exiting(question: str) -> str:
    raise SystemExit(3)


async def timing_out(question: str) -> str:
    raise TimeoutError("upstream")


def wrong(question: str) -> Any:
    return 42


async def cancelled(question: str) -> str:
    raise asyncio.CancelledError


async def cancelling_itself(question: str) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return question


async def interrupted(question: str) -> str:
    raise KeyboardInterrupt


async def generator_exit(question: str) -> str:
    raise GeneratorExit


def not_a_number(question: str) -> Any:
    return {"response": float("nan")}


def no_json(question: str) -> Any:
    return {"response": object()}


def no_json_arguments(question: str) -> Any:
    return {"response": "", "tool_calls": [{"name": "t", "args": object()}]}


def wrong_calls(question: str) -> Any:
    return Reply("", tool_calls=({"name": "t"},))  # type: ignore[arg-type]


def wrong_metadata(question: str) -> Any:
    return Reply("", metadata={"when": object()})


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (raising, "LookupError: nothing about a"),
        (exiting, "SystemExit: 3"),
        (timing_out, "TimeoutError: upstream"),
        (cancelled, "the agent raised CancelledError"),
        (cancelling_itself, "the agent raised CancelledError"),
        (interrupted, "KeyboardInterrupt"),
        (generator_exit, "GeneratorExit"),
        (not_a_number, "JSON cannot express the answer: Out of range float values are not JSON compliant"),
        (no_json, "JSON cannot express the answer: Object of type object is not JSON serializable"),
        (no_json_arguments, f"reply.tool_calls: {NO_JSON}"),
        (wrong_calls, "reply.tool_calls[0]: must be an instance of ToolCall, not dict"),
        (
            wrong_metadata,
            f"reply.metadata: {NO_JSON}",
        ),
        (wrong, "the agent returned int; it must return a text or a Reply"),
    ],
)
def test_what_a_function_does_wrong_is_an_error_of_the_case(agent: Any, reason: str) -> None:
    outcome = evaluate(suite("a"), agent=agent)
    assert outcome.exit_status == 3
    assert [found.reason for found in outcome.results.failed()] == [reason]


def test_a_removed_working_directory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    calls: list[Callable[[], object]] = [
        lambda: evaluate(suite("a"), agent=echo),
        lambda: evaluate(suite("a"), agent="replay:x"),
        lambda: load_suites("x"),
    ]
    for call in calls:
        with pytest.raises(InfrastructureError, match="the working directory is gone"):
            call()


def test_a_path_that_is_too_long_is_a_problem_of_its_argument() -> None:
    long = "x" * 5000
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: evaluate(long), "suites[0]"),
        (lambda: evaluate(suite("a"), agent=echo, baseline=long), "baseline"),
        (lambda: evaluate(suite("a"), agent=echo, out="a/" * 2500), "out"),
        (lambda: evaluate(suite("a"), agent=f"replay:{long}"), "--agent: replay"),
        (lambda: read_results(long), "path"),
        (lambda: load_suites(long), "paths[0]"),
    ]
    for call, name in calls:
        with pytest.raises(ConfigError) as raised:
            call()
        assert str(raised.value) == f"{name}: is too long for a path"


@pytest.mark.parametrize(
    ("kind", "target", "message"),
    [
        ("comand", "x", "no kind 'comand'; did you mean 'command'?"),
        ("model_tool", "x", "no kind 'model_tool'; did you mean 'model'?"),
        ("command", (), "an agent of kind 'command' needs a `target`"),
        ("model", "x", "an agent of kind 'model' needs the option 'agent'"),
        ("plugin", "x", "an agent of kind 'plugin' needs the option 'options'"),
        ("framework", "x", "an agent of kind 'framework' needs the option 'method'"),
    ],
)
def test_a_specification_that_names_no_agent_is_a_config_error(kind: str, target: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(suite("a"), agent=AgentSpec(kind=kind, target=target, directory="."))
    assert str(raised.value).startswith(f"agent: {message}")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (MetricConfig("e", "equality", "standard", options={"nope": 1}), "equality: no option 'nope'; known: case_"),
        (
            MetricConfig("e", "equality", "standard", options={"strip_whitespac": True}),
            "equality: no option 'strip_whitespac'; did you mean 'strip_whitespace'?",
        ),
        (MetricConfig("e", "schema", "schema"), "schema: the options are wrong: "),
    ],
)
def test_wrong_options_of_a_metric_are_config_errors(config: MetricConfig, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(suite("a"), agent=echo, metrics=[config])
    assert str(raised.value).startswith(message)


def test_a_process_ends_although_its_agent_never_answers(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("a")], execution={"llm_timeout": 1})
    program = "import time, agenteval; print(agenteval.evaluate(agent=lambda q: time.sleep(1000)).exit_status)"
    done = python_program("-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@dataclass(frozen=True)
class Requiring(Metric):
    """A metric that needs a field that does not exist."""

    @property
    def requires(self) -> frozenset[str]:
        return frozenset({"answer"})

    def measure(self, observation: Observation, /) -> bool:
        return True


def two(first: str, second: str) -> str:
    return first + second


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"agent": two}, "cannot be called with one argument"),
        ({"agent": echo, "iterations": 0}, "iterations: must be greater than or equal to 1, not 0"),
        (
            {"agent": echo, "limits": Limits(max_cost_usd=-1.0)},
            "limits.max_cost_usd: must be .* to 0, not -1.0",
        ),
        ({"agent": echo, "metrics": [object()]}, "'object' is not a metric"),
        (
            {"agent": echo, "metrics": [Requiring()]},
            r"metrics\[0\]: Requiring.requires names 'answer'",
        ),
        ({"agent": 5}, "agent: must be a text, an instance of AgentSpec or a function, not 5"),
        ({"agent": echo, "iterations": "3"}, "iterations: must be a whole number, not a text"),
        ({"agent": echo, "limits": {"max_calls": 1}}, "limits: must be an instance of Limits, not dict"),
        ({"agent": echo, "limits": Limits(max_calls="1")}, "limits.max_calls: must be a whole number, not a text"),  # type: ignore[arg-type]
        ({"agent": echo, "tags": "slow"}, "tags: must be a tuple, not a text"),
        ({"agent": echo, "filter": "x"}, "no case matches"),
        ({"agent": "nobody"}, "no agent is called 'nobody'"),
        ({"agent": echo, "baseline": "missing"}, "missing"),
        ({}, "no agent to run"),
    ],
)
def test_wrong_arguments_are_config_errors(
    arguments: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=problem) as raised:
        evaluate(suite("a"), **arguments)
    assert len(raised.value.problems) == 1


def test_it_leaves_nothing_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("INPUT_RUNS", "7")
    write_suite(tmp_path, [case("a"), case("b", ground_truth="other")], agent=echo_agent(tmp_path))
    before = sorted(tmp_path.rglob("*"))

    outcome = evaluate("agent.yaml")

    assert [found.name for found in outcome.results.failed()] == ["b"]
    assert len(outcome.results.suites[0].cases[0].iterations) == 1
    after = [path for path in sorted(tmp_path.rglob("*")) if "__pycache__" not in path.parts]
    assert (after, capfd.readouterr()) == (before, ("", ""))


@dataclass(frozen=True)
class Length(Metric):
    most: int = 3

    def measure(self, observation: Observation, /) -> bool:
        return len(observation.response) <= self.most


@dataclass(frozen=True)
class Unanimous(CaseMetric):
    resources: Resources | None = None

    def measure_all(self, observations: Any, /) -> list[float]:
        assert self.resources is not None
        return [float(len({item.response for item in observations}) == 1)] * len(observations)


def test_given_metrics_are_measured_beside_those_of_the_suite() -> None:
    threshold = MetricConfig(id="f1", type="f1_score", kind="standard", threshold=0.9)
    metrics: list[Metric | CaseMetric | MetricConfig] = [Length(), Length(1), Unanimous(), threshold]
    outcome = evaluate(suite("abc"), agent=echo, metrics=metrics, iterations=2)
    means = {name: metric.mean for name, metric in outcome.results.summary.metrics.items()}
    assert means == {"equality": 1.0, "length": 1.0, "length#2": 0.0, "unanimous": 1.0, "f1": 1.0}
    assert outcome.results.failed()[0].reason == "length#2: scored 0.00"


@dataclass(frozen=True)
class Broken(Metric):
    error: BaseException

    def measure(self, observation: Observation, /) -> float:
        raise self.error


@dataclass(frozen=True)
class Hanging(Metric):
    def measure(self, observation: Observation, /) -> float:
        threading.Event().wait()
        return 1.0


@dataclass(frozen=True)
class Giving(Metric):
    """A metric that returns any value."""

    value: Any

    def measure(self, observation: Observation, /) -> Any:
        return self.value


@dataclass(frozen=True)
class Short(CaseMetric):
    def measure_all(self, observations: Any, /) -> list[float]:
        return []


@dataclass(frozen=True)
class GivingAll(CaseMetric):
    """A metric over all iterations that returns any value."""

    value: Any

    def measure_all(self, observations: Any, /) -> Any:
        return self.value


@dataclass(frozen=True)
class BrokenForAll(CaseMetric):
    error: BaseException

    def measure_all(self, observations: Any, /) -> list[float]:
        raise self.error


@dataclass(frozen=True)
class Cancelled(Metric):
    async def measure(self, observation: Observation, /) -> float:
        raise asyncio.CancelledError


@dataclass(frozen=True)
class Interrupted(CaseMetric):
    async def measure_all(self, observations: Any, /) -> list[float]:
        raise KeyboardInterrupt


class AttributeOfAnyName:
    """A metric that breaks the protocol of ``__getattr__``."""

    requires: frozenset[str] = frozenset()

    def measure(self, observation: Observation, /) -> float:
        return 1.0

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


@dataclass(frozen=True)
class Endless(CaseMetric):
    def measure_all(self, observations: Any, /) -> list[float]:
        threading.Event().wait()
        return []


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (Giving("good"), "giving: the metric returned str; it must return an Outcome, a boolean, a number or None"),
        (Giving(Outcome("x")), "giving: outcome.score: must be a number, not a text"),  # type: ignore[arg-type]
        (Giving(Outcome(1.0, reason=5)), "giving: outcome.reason: must be a text, not 5"),  # type: ignore[arg-type]
        (
            Giving(Outcome(1.0, details={"n": object()})),
            f"giving: outcome.details: {NO_JSON}",
        ),
        (Short(), "short: `measure_all` returned 0 outcomes for 1 observations"),
        (GivingAll({"a": 1.0}), f"giving_all: `measure_all` returned dict{ONE_EACH}"),
        (GivingAll(1.0), f"giving_all: `measure_all` returned float{ONE_EACH}"),
        (BrokenForAll(ValueError("boom")), "broken_for_all: ValueError: boom"),
        (BrokenForAll(SystemExit(0)), "broken_for_all: SystemExit: 0"),
        (Cancelled(), "cancelled: CancelledError"),
        (Interrupted(), "interrupted: KeyboardInterrupt"),
        (MetricConfig("e", "e", "custom", metric=Endless(), timeout_s=0.2), "e: no result within 0.2 s"),
        (Broken(ValueError("boom")), "broken: ValueError: boom"),
        (Broken(SystemExit(0)), "broken: SystemExit: 0"),
        (MetricConfig("b", "b", "custom", metric=Broken(ValueError("boom"))), "b: ValueError: boom"),
        (MetricConfig("h", "h", "custom", metric=Hanging(), timeout_s=0.2), "h: no result within 0.2 s"),
    ],
)
def test_a_metric_that_fails_makes_its_case_an_error(metric: Any, reason: str) -> None:
    outcome = evaluate(suite("a"), agent=echo, metrics=[metric])
    assert [found.reason for found in outcome.results.failed()] == [reason]
    assert outcome.exit_status == 3


class RequirementsOfNoMetric:
    """A metric whose requirements are not to be had."""

    def measure(self, observation: Observation, /) -> float:
        return 1.0

    @property
    def requires(self) -> frozenset[str]:
        raise LookupError("none")


@dataclass(frozen=True)
class WithoutResources(Unanimous):
    def __post_init__(self) -> None:
        if self.resources is not None:
            raise ValueError("too many")


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            AttributeOfAnyName,
            "metrics[0]: AttributeOfAnyName.__getattr__ raised LookupError: measure_all;"
            " it must raise AttributeError",
        ),
        (RequirementsOfNoMetric, "metrics[0]: RequirementsOfNoMetric.requires raised LookupError: none"),
        (
            lambda: MetricConfig("m", "m", "custom", threshold="high"),  # type: ignore[arg-type]
            "metrics[0]: metric.threshold: must be a number, not a text",
        ),
        (WithoutResources, "metrics: WithoutResources cannot be made with `resources`: ValueError: too many"),
    ],
)
def test_a_metric_that_cannot_be_used_is_a_config_error(metric: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(suite("a"), agent=echo, metrics=[metric()])
    assert str(raised.value) == said


def test_a_metric_that_does_not_apply_is_skipped() -> None:
    @dataclass(frozen=True)
    class Never(Metric):
        def measure(self, observation: Observation, /) -> None:
            return None

    outcome = evaluate(suite("a"), agent=echo, metrics=[Never()])
    score = outcome.results.suites[0].cases[0].iterations[0].turns[0].scores[1]
    assert (score.status, score.reason) == ("skipped", "the metric does not apply")
    assert outcome.gate.headline == "metric unchecked: never (unmeasured in every reply)"
    assert outcome.warnings == ()


def test_in_an_event_loop_it_names_the_function_to_use() -> None:
    async def main() -> None:
        evaluate(suite("a"), agent=echo)

    with pytest.raises(RuntimeError, match="evaluate_async"):
        asyncio.run(main())


def test_cancelling_ends_the_run(tmp_path: Path) -> None:
    async def main() -> None:
        asked = threading.Event()

        async def agent(question: str) -> str:
            asked.set()
            await asyncio.sleep(PATIENCE_S)
            return question

        run = asyncio.create_task(evaluate_async(suite("a"), agent=agent))
        assert await asyncio.to_thread(asked.wait, PATIENCE_S)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, PATIENCE_S / 2)

    asyncio.run(main())
    assert eventually(lambda: not [item for item in threading.enumerate() if item.name.startswith("asyncio")])


def test_in_a_thread_it_touches_no_signal(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(evaluate(tmp_path / "agent.yaml").gate.passed)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [True, True]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_then_takes_effect(number: signal.Signals) -> None:
    received: list[int] = []

    def handler(received_number: int, _: object) -> None:
        received.append(received_number)
        raise KeyboardInterrupt

    before = signal.signal(number, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(suite("a"), agent=_killing(number))
        assert received == [number]
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def _killing(number: signal.Signals) -> Any:
    async def agent(question: str) -> str:
        os.kill(os.getpid(), number)
        await asyncio.sleep(PATIENCE_S)
        return question

    return agent


class AnyAttribute:
    """An agent that breaks the protocol of ``__getattr__``."""

    def __call__(self, question: str) -> str:
        raise LookupError("called")

    def __getattr__(self, name: str) -> Any:
        raise LookupError("called")


def test_an_agent_with_attributes_of_any_name_is_called() -> None:
    (case,) = evaluate(suite("a"), agent=AnyAttribute()).results.failed()
    assert case.reason == "LookupError: called"


@pytest.mark.parametrize(("lost", "told"), [(1, []), (2, ["2 of 5"]), (5, ["5 of 5"])])
def test_a_metric_that_has_no_score_any_more_is_named(lost: int, told: list[str]) -> None:
    both = suite(*"abcde", metrics=(EQUALITY, MetricConfig(id="f1", type="f1_score", kind="standard", threshold=0.9)))
    before = evaluate(both, agent=echo)
    fewer = replace(both, cases=(*suite(*"abcde"[:lost]).cases, *both.cases[lost:]))
    after = evaluate(fewer, agent=echo, baseline=before.results)
    assert after.results.comparison is not None
    assert [item.text for item in after.results.comparison.unproven] == [
        f"metrics that decided about cases of the baseline were changed or removed: f1 in {cases} cases; "
        "restore them, or make a new baseline"
        for cases in told
    ]
