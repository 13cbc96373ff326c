"""The test kit reports every defect of an extension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agenteval.agents.base import Reply, Request
from agenteval.core.errors import ConfigError, Problem
from agenteval.metrics.base import Observation, Outcome
from agenteval.suite.formats.base import Format, Source
from agenteval.suite.model import Case, Suite, Turn
from agenteval.testing import check_agent, check_format, check_metric

OBSERVATION = Observation("question", "answer")


class Unstable:
    """A metric with a different score each time."""

    def __init__(self) -> None:
        self.scores = iter((0.1, 0.2))

    def measure(self, observation: Observation, /) -> float:
        return next(self.scores)


class Returning:
    """A metric that returns a value, or raises it."""

    def __init__(self, value: Any, requires: Any = frozenset()) -> None:
        self.value = value
        self.requires = requires

    def measure(self, observation: Observation, /) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@dataclass
class Option:
    """A metric with an option of any kind."""

    option: Any

    def measure(self, observation: Observation, /) -> float:
        if isinstance(self.option, list):
            self.option.append(1)
        return 1.0


class Together:
    """A metric over all iterations."""

    def __init__(self, count: int) -> None:
        self.count = count

    def measure_all(self, observations: Sequence[Observation], /) -> list[float]:
        return [0.5] * self.count


@pytest.mark.parametrize("value", [True, 1, 0.5, Outcome(0.25, reason="so", details={"n": 1})])
def test_a_sound_metric_passes(value: Any) -> None:
    assert check_metric(Returning(value), OBSERVATION).score == (
        value.score if isinstance(value, Outcome) else float(value)
    )


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Returning, "is a class"),
        (Returning(1.5), "from 0 to 1"),
        (Returning(float("nan")), "from 0 to 1"),
        (Returning("good"), "returned str"),
        (Returning(None), "does not apply"),
        (Returning(ZeroDivisionError("boom")), "ZeroDivisionError: boom"),
        (Returning(Outcome(1.0, details={"n": object()})), "JSON"),
        (Returning(1.0, frozenset({"answer"})), "names 'answer'"),
        (Returning(1.0, ["ground_truth"]), "must be a frozenset"),
        (Returning(1.0, frozenset({"ground_truth"})), "give an observation that has it"),
        (Option(lambda: None), "cannot be pickled"),
        (Option(object()), "changes when it is pickled"),
        (Option([]), "changed its options"),
        (Unstable(), "twice"),
        (Together(1), "1 outcomes for 2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_defects_of_metrics_are_reported(metric: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_metric(metric, OBSERVATION)


FINE = Reply("fine")


@dataclass
class Agent:
    """An agent with one defect, or none."""

    reply: Any = FINE
    starts: bool = True
    closes: int = 2
    sessions: int = 0

    async def start(self) -> None:
        if not self.starts:
            raise ConfigError(Problem("no such program"))

    def session(self) -> Agent:
        self.sessions += 1
        return self

    async def send(self, request: Request) -> Any:
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def end(self) -> None:
        self.sessions -= 1

    async def close(self) -> None:
        self.closes -= 1
        if self.closes < 0:
            raise RuntimeError("closed already")


def test_a_sound_agent_passes_and_its_sessions_are_closed() -> None:
    agent = Agent()
    assert check_agent(agent) == [FINE]
    assert (agent.sessions, agent.closes) == (0, 0)


def test_a_function_is_an_agent() -> None:
    assert check_agent(lambda question: question.upper()) == [Reply("HELLO")]


@pytest.mark.parametrize("path", ["/etc/x", "../x", "", ".", "a\0b"])
def test_files_of_a_format_stay_inside_the_project(path: str) -> None:
    with pytest.raises(AssertionError, match="path of a file inside a project"):
        check_format(_format(), {path: "one"})


def metadata(**values: Any) -> Mapping[str, Any]:
    return values


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (Agent(starts=False), "does not start: no such program"),
        (Agent(closes=1), "cannot be closed twice"),
        (Agent(5), "returned int; it must return a text or a Reply"),
        (Agent({"response": "", "usage": 1}), "usage"),
        (Agent(Reply(1)), "reply.response: must be a text, not 1"),  # type: ignore[arg-type]
        (Agent(Reply("", tool_calls=({"name": "x"},))), "must be an instance of ToolCall"),  # type: ignore[arg-type]
        (Agent(Reply("", metadata=metadata(when=object()))), "JSON"),
        (Agent(OSError("gone")), "does not answer 'hello': OSError: gone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_an_agent_is_named(agent: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_agent(agent)


def _cases(source: Source) -> Suite:
    """One case for each line; a line without text is a mistake."""
    lines = source.text().splitlines()
    problems = [source.problem("empty", line=number) for number, line in enumerate(lines, 1) if not line]
    if problems:
        raise ConfigError(problems)
    cases = (Case(f"{source.name}::{line}", line, (Turn(line),)) for line in lines)
    return Suite(source.name, "lines", "acme.lines", tuple(cases))


def _counting(source: Source) -> Suite:
    _counting.loads += 1  # type: ignore[attr-defined]
    return Suite("a", "a", "x", (Case("a", "a", (Turn(str(_counting.loads)),)),))  # type: ignore[attr-defined]


_counting.loads = 0  # type: ignore[attr-defined]


def _bytes(source: Source) -> Suite:
    source.path.read_bytes().decode("utf-8")
    return _cases(source)


def _format(load: Any = _cases, name: str = "acme.lines", pattern: str = "*.qa", matches: bool = True) -> Format:
    return Format(name, "lines", (pattern,), lambda source: matches, load)


def test_a_sound_format_passes() -> None:
    suite = check_format(_format(), {"a.qa": "one\ntwo\n", "more.txt": ""}, broken={"b.qa": "one\n\n"})
    assert [case.name for case in suite.cases] == ["one", "two"]


@pytest.mark.parametrize(
    ("format_", "content", "broken", "message"),
    [
        (_format(name="lines"), "one", {}, "needs a dot"),
        (_format(pattern="*.txt"), "one", {}, "no pattern"),
        (_format(matches=False), "one", {}, "does not match"),
        (_format(lambda source: None), "one", {}, "must return a Suite"),
        (_format(lambda source: int(source.name)), "one", {}, "ValueError"),
        (_format(pattern="/x"), "one", {}, "not a relative glob"),
        (_format(lambda source: Suite(source.name, "l", "x", (5,))), "one", {}, r"suite.cases\[0\]: must be"),  # type: ignore[arg-type]
        (_format(_counting), "one", {}, "two different suites"),
        (_format(), "one\none", {}, "several cases have the id"),
        (_format(), "one", {"b.qa": "two"}, "which has a mistake"),
        (_format(_bytes), "one", {}, "UnicodeDecodeError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_format_is_named(
    format_: Format, content: str, broken: Mapping[str, str], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_format(format_, {"a.qa": content}, broken=broken)
