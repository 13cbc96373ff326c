"""The assistant of `examples/quickstart`: it computes its answers, and its switch makes them worse."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "quickstart"
MODULES = ("calculator", "conversation", "quote", "search")


@pytest.fixture(scope="module")
def agent() -> Iterator[Any]:
    """Load `agent.py` as its users do, with its folder on the path, and leave no trace."""
    spec = importlib.util.spec_from_file_location("quickstart_agent", FOLDER / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        spec.loader.exec_module(module)
        yield module
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def search(agent: Any) -> Any:
    return sys.modules[agent.Index.__module__]


@pytest.fixture(autouse=True)
def no_switch_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANKING", "NOISE", "SEED"):
        monkeypatch.delenv(f"QUICKSTART_{name}", raising=False)


def converse(agent: Any, *questions: str, **config: str) -> list[dict[str, Any]]:
    """Ask one question after the other and return all replies."""
    history: list[dict[str, str]] = []
    replies = []
    for question in questions:
        request = {"input": question, "history": list(history), "config": config}
        replies.append(agent.reply(request))
        history.append({"role": "user", "content": question})
        history.append({"role": "assistant", "content": replies[-1]["response"]})
    return replies


def answers(agent: Any, *questions: str, **config: str) -> list[str]:
    return [reply["response"] for reply in converse(agent, *questions, **config)]


class TestAmounts:
    @pytest.mark.parametrize(
        ("question", "amount"),
        [
            ("How much is a tandem?", "32.00"),
            ("How much are 2 city bikes and a child seat for 3 days?", "99.00"),
            ("How much is the road bike for a week?", "172.55"),
            ("How much is the deposit for three e-bikes?", "450.00"),
            ("What deposit do we leave for 8 cargo bikes?", "1,600.00"),
            ("How much does delivery over 12.5 km cost?", "10.63"),
            ("How much is the vineyard ride for 6 people?", "252.00"),
        ],
    )
    def test_is_computed(self, agent: Any, question: str, amount: str) -> None:
        assert answers(agent, question) == [amount]


class TestSwitch:
    QUESTION = "How much is a trekking bike for 2 days?"

    def test_config(self, agent: Any) -> None:
        assert answers(agent, self.QUESTION) == ["36.00"]
        assert answers(agent, self.QUESTION, ranking="first-match") == ["29.00"]


class TestNoise:
    QUESTION = "How much is a trekking bike for 2 days?"

    def unlucky(self, agent: Any, sessions: int = 1000) -> set[int]:
        """The sessions that miss the best passage."""
        requests = ({"input": self.QUESTION, "session": f"case#{number}"} for number in range(sessions))
        return {number for number, request in enumerate(requests) if agent.is_unlucky(request)}

    @pytest.mark.parametrize(("noise", "least", "most"), [("0", 0, 0), ("0.1", 70, 130), ("1", 1000, 1000)])
    def test_it_says_how_often(
        self, agent: Any, monkeypatch: pytest.MonkeyPatch, noise: str, least: int, most: int
    ) -> None:
        monkeypatch.setenv("QUICKSTART_NOISE", noise)
        assert least <= len(self.unlucky(agent)) <= most
