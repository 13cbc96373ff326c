"""Every parameter of every public function refuses nonsense, and so does every field of the values that it takes.

The tests read the signatures: a new parameter or field without a check fails here.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import testing
from agenteval.core.arguments import problems
from agenteval.core.errors import ConfigError, InfrastructureError

EQUALITY = agenteval.MetricConfig(id="equality", type="equality", kind="standard")
CASE = agenteval.Case("s::a", "a", (agenteval.Turn("a", ground_truth="a", metrics=(EQUALITY,)),))
SUITE = agenteval.Suite("s", "s", "python", (CASE,))
FORMAT = agenteval.Format("acme.x", "x", ("*.x",), lambda source: True, lambda source: SUITE)
OBSERVATION = agenteval.Observation("a", "a")


class Nonsense:
    """A value that nothing expects."""

    def __repr__(self) -> str:
        return "s3cret"


class Exact:
    """A metric."""

    def measure(self, observation: agenteval.Observation, /) -> bool:
        return True


def echo(question: str) -> str:
    return question


def results() -> agenteval.Results:
    return agenteval.evaluate(SUITE, agent=echo).results


def evaluate_async(*args: Any, **given: Any) -> object:
    async def run() -> object:
        return await agenteval.evaluate_async(*args, **given)

    return asyncio.run(run())


#: Each public function: how to call it, what it needs to be called, and the exception of a wrong argument.
FUNCTIONS: dict[str, tuple[Callable[..., object], Callable[[], dict[str, Any]], type[Exception]]] = {
    "evaluate": (agenteval.evaluate, lambda: {"suites": SUITE, "agent": echo}, ConfigError),
    "evaluate_async": (evaluate_async, lambda: {"suites": SUITE, "agent": echo}, ConfigError),
    "compare": (agenteval.compare, lambda: {"current": results(), "baseline": results()}, ConfigError),
    "read_results": (agenteval.read_results, lambda: {"path": "missing"}, ConfigError),
    "load_suites": (agenteval.load_suites, dict, ConfigError),
    "check_metric": (testing.check_metric, lambda: {"metric": Exact(), "observation": OBSERVATION}, AssertionError),
    "check_agent": (testing.check_agent, lambda: {"agent": echo}, AssertionError),
    "check_format": (testing.check_format, lambda: {"format_": FORMAT, "files": {"a.x": "a"}}, AssertionError),
}
PUBLIC = {
    name: found
    for module in (agenteval, testing)
    for name in module.__all__
    if inspect.isfunction(found := getattr(module, name))
}
# Both forms of `evaluate` check their arguments in one place.
PARAMETERS = [
    (name, parameter)
    for name, found in PUBLIC.items()
    if name != "evaluate_async"
    for parameter in inspect.signature(found).parameters
]

ALWAYS_WRONG: tuple[Any, ...] = (Nonsense(), 1j, b"a", [Nonsense()], {"a": Nonsense()}, range(3))
EDGES: tuple[Any, ...] = (
    *(None, "", "\0", "\ud800", -1, 2**70, math.nan, True, [], {}, [None], {"fail_on": 5}, Path("\0"), Nonsense),
    *(SUITE, EQUALITY, agenteval.GatePolicy(), lambda: None),
)


def call(name: str, parameter: str, value: Any) -> object:
    """Call a public function with one argument replaced."""
    function, needed, _ = FUNCTIONS[name]
    given = {**needed(), parameter: value}
    signature = inspect.signature(PUBLIC[name])
    several = [item.name for item in signature.parameters.values() if item.kind is item.VAR_POSITIONAL]
    first = [given.pop(item) for item in several if item in given]
    return function(*first, **given)


def test_the_table_names_every_function() -> None:
    assert FUNCTIONS.keys() == PUBLIC.keys()


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_a_wrong_type_is_a_problem_of_its_parameter(name: str, parameter: str) -> None:
    error = FUNCTIONS[name][2]
    for value in ALWAYS_WRONG:
        with pytest.raises(error) as raised:
            call(name, parameter, value)
        lines = str(raised.value).splitlines()
        assert all(line.startswith(parameter) for line in lines), (value, lines)
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_an_edge_is_taken_or_refused_by_a_documented_error(
    name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = []
    for value in EDGES:
        try:
            call(name, parameter, value)
        except (ConfigError, InfrastructureError, FUNCTIONS[name][2]) as error:
            refused.append(str(error))
    assert all(refused)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_wrong_call_names_the_argument(name: str) -> None:
    function, needed, error = FUNCTIONS[name]
    given = {key: value for key, value in needed().items() if key != "suites"}
    with pytest.raises(error, match=r"arguments: .*'sutes'"):
        function(**given, sutes=1)


#: Public values that a caller makes: one of each.
VALUES = (
    SUITE,
    CASE,
    CASE.turns[0],
    EQUALITY,
    agenteval.AgentSpec("command", ("true",), "."),
    agenteval.Limits(),
    agenteval.GatePolicy(),
    agenteval.Observation("a", "a"),
    agenteval.Outcome(1.0),
    agenteval.Reply("a"),
    agenteval.Request("a", "a", 0, "a"),
    FORMAT,
    agenteval.Source(Path(), "a"),
)
#: Fields that only formats fill, and one that may be any object.
ANY_VALUE = {("Suite", "aggregate"), ("Suite", "evaluation"), ("Case", "aggregate"), ("MetricConfig", "metric")}
FIELDS = [
    (value, item.name)
    for value in VALUES
    for item in fields(value)
    if item.init and (type(value).__name__, item.name) not in ANY_VALUE
]


@pytest.mark.parametrize(("value", "name"), FIELDS, ids=lambda item: item if isinstance(item, str) else "")
def test_every_field_of_a_value_is_checked(value: Any, name: str) -> None:
    assert problems(value, type(value), "value") == []
    for wrong in (Nonsense(), 1j, math.nan):
        broken = copy.copy(value)
        object.__setattr__(broken, name, wrong)
        found = problems(broken, type(value), "value")
        assert [problem.path for problem in found] == [f"value.{name}"], (wrong, found)


@pytest.mark.parametrize(
    ("name", "parameter"), [("evaluate", "baseline"), ("compare", "current"), ("read_results", "like")]
)
def test_the_json_of_results_is_no_results(name: str, parameter: str) -> None:
    with pytest.raises(ConfigError, match=f"{parameter}: must be .*an instance of Results, not dict"):
        call(name, parameter, results().model_dump())


def suite(*cases: agenteval.Case, path: str = "s") -> agenteval.Suite:
    return agenteval.Suite(path, "s", "python", cases)


OTHER = agenteval.Case("s::b", "b", CASE.turns)


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        ([suite(CASE, CASE)], "several cases have the id 's::a'"),
        ([suite(CASE), suite(CASE, path="t")], "several cases have the id 's::a'"),
        ([suite(CASE), suite(OTHER)], "several suites have this path"),
        ([suite(agenteval.Case("s::c", "c", ()))], "case 's::c' has no turn"),
        ([suite()], "the suite has no cases"),
    ],
)
def test_suites_of_a_caller_are_checked_as_a_whole(suites: list[agenteval.Suite], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        agenteval.evaluate(*suites, agent=echo)
