"""What is said about an agent that fails in every case, and when it is not asked any more."""

from __future__ import annotations

import pytest

from agenteval.core.errors import MOST_ALIKE, Kind, SameFailure
from agenteval.run.agent_failure import AgentFailure
from agenteval.suite.model import AgentSpec

TRACEBACK = (
    "the agent's command ended with exit status 1: Traceback (most recent call last): "
    'File "/p/shop/agent.py", line 7, in <module> main() File "/usr/lib/python3/site-packages/x.py", line 3, in main '
)


HERE, CODE = "agenteval.yaml:3", "/p/shop/agent.py:7"


def failure(error: str, cases: int = 1, total: int = 1, fastest_ms: float | None = None) -> AgentFailure:
    spec = AgentSpec(kind="command", target=("x",), directory="/p/shop", where="agenteval.yaml:3")
    return AgentFailure(spec, error, cases, total, fastest_ms)


@pytest.mark.parametrize(
    ("error", "place", "said"),
    [
        ("exit status 1: Error: Cannot find module '/p/shop/bot.js' at Module", HERE, "bot.js does not exist here"),
        ("exit status 127: bash: line 1: nosuch: command not found", HERE, "nosuch does not exist here"),
        (
            f"{TRACEBACK}openai.AuthenticationError: no",
            CODE,
            "openai.AuthenticationError: no; `agenteval probe` repeats it with one case",
        ),
        ("the agent answered 500", HERE, "your agent failed: the agent answered 500"),
        ("no answer within the 3 s of the case", HERE, "set a longer `case_timeout` in agenteval.yaml"),
        ("x" * 5000, HERE, "your agent failed: xxx"),
        ("", HERE, "your agent failed: "),
    ],
)
def test_explanations(error: str, place: str, said: str) -> None:
    problem = failure(error).problem()
    assert problem.kind is Kind.AGENT_FAILS
    assert problem.place == place
    assert said in problem.message
    assert len(problem.message) < 1000


def test_the_fastest_answer_and_the_share_of_slow_cases() -> None:
    said = failure("no answer within 0.5 s", 3, 10, 310.0).problem().message
    assert said.startswith("your agent did not answer within 0.5 s in 3 of 10 cases (fastest answer 0.3 s); ")


def test_ten_failures_alike_are_final() -> None:
    alike = SameFailure()
    for number in range(MOST_ALIKE):
        assert not alike.is_final, number
        alike.add("refused")
    assert (alike.is_final, alike.error) == (True, "refused")
    assert "not asked again" in failure("x", MOST_ALIKE + 1, MOST_ALIKE + 1).problem().message
    assert "not asked again" not in failure("x", MOST_ALIKE, MOST_ALIKE).problem().message


@pytest.mark.parametrize("other", [None, "another one"])
@pytest.mark.parametrize("place", range(0, MOST_ALIKE, 3))
def test_anything_else_among_the_first_turns_keeps_it_going(other: str | None, place: int) -> None:
    alike = SameFailure()
    for number in range(5 * MOST_ALIKE):
        alike.add(other if number == place else "refused")
    assert not alike.is_final
