"""The assistant of `examples/quickstart`: it computes its answers, and its switch makes them worse."""

import importlib
import importlib.util
import json
import os
import subprocess
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
def calculator(agent: Any) -> Any:
    return sys.modules[agent.calculate.__module__]


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


class TestRanking:
    @pytest.mark.parametrize(
        ("query", "section"),
        [
            ("price of the city bike", "Bike prices"),
            ("charging the battery", "Charging"),
            ("when do I get the deposit back", "When you get it back"),
            ("opening hours on Sundays in winter", "Winter"),
        ],
    )
    def test_bm25_finds_the_passage(self, agent: Any, query: str, section: str) -> None:
        hits = agent.index().search(query, 3, "bm25")
        assert hits[0].passage.section == section

    def test_a_rare_word_counts_more_than_common_ones(self, search: Any) -> None:
        common = [search.Passage(f"{i}.md", "Bike", "Bike", "The bike is a bike.") for i in range(3)]
        rare = search.Passage("z.md", "Terms", "Terms", "A helmet and a bike.")
        hits = search.Index([*common, rare]).search("bike helmet", 4, "bm25")
        assert hits[0].passage == rare

    def test_a_short_passage_wins_over_a_long_one(self, search: Any) -> None:
        long = search.Passage("a.md", "Help", "Help", "Helmet. " + "Other words follow. " * 20)
        short = search.Passage("b.md", "Help", "Help", "Helmet.")
        hits = search.Index([long, short]).search("helmet", 2, "bm25")
        assert [hit.passage for hit in hits] == [short, long]

    def test_first_match_keeps_the_order_of_the_files(self, agent: Any) -> None:
        hits = agent.index().search("price of the city bike", 50, "first-match")
        sources = [hit.passage.source for hit in hits]
        assert sources == sorted(sources)
        assert sources[0] == "accessories.md"

    @pytest.mark.parametrize("ranking", ["bm25", "first-match"])
    @pytest.mark.parametrize("query", ["", "what is the", "zeppelin"])
    def test_nothing_in_common_finds_nothing(self, agent: Any, query: str, ranking: str) -> None:
        assert agent.index().search(query, 3, ranking) == []

    def test_unknown_ranking(self, agent: Any) -> None:
        with pytest.raises(ValueError, match="unknown ranking 'best'; use 'bm25' or 'first-match'"):
            converse(agent, "Do you accept cash?", ranking="best")

    @pytest.mark.parametrize(
        ("one", "other"), [("charging", "charges"), ("cancelled", "cancel"), ("people", "person")]
    )
    def test_forms_of_a_word_meet(self, search: Any, one: str, other: str) -> None:
        assert search.stem(one) == search.stem(other)


class TestCalculator:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("2 + 3 * 4", 14),
            ("(14 * 10 + 3 * 10) * (1 - 15 / 100)", 144.5),
            ("-2 ** 2", -4),
            ("2 ** -1", 0.5),
        ],
    )
    def test_arithmetic(self, calculator: Any, expression: str, value: float) -> None:
        assert calculator.calculate(expression) == pytest.approx(value)

    @pytest.mark.parametrize(
        "expression",
        [
            "price",
            "__import__('os')",
            "abs(1)",
            "(1).real",
            "[1][0]",
            "'a' * 9",
            "True + 1",
            "1j",
            "1 if 1 else 2",
            "1 < 2",
            "x := 1",
            "",
            "1 +",
            "1 / 0",
            "9 ** 9 ** 9",
            "9999999 ** 2",
            "2 ** 17",
            "(-8) ** 0.5",
            "1e999",
            "1e300 * 1e300",
            "1 / 3" + " + 1" * 100,
        ],
    )
    def test_anything_else_is_rejected(self, calculator: Any, expression: str) -> None:
        with pytest.raises(calculator.CalculatorError):
            calculator.calculate(expression)


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

    def test_as_json(self, agent: Any) -> None:
        (response,) = answers(agent, "How much is a tandem for 2 days? Answer as JSON.")
        assert json.loads(response) == {"total": 64.0, "currency": "EUR"}

    def test_follows_the_help_pages(
        self, agent: Any, search: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "prices.md").write_text("# Prices\n\n## Boats\n\n- Rowing boat: 7.25 EUR per hour\n")
        boats = search.Index.of_folder(tmp_path)
        monkeypatch.setattr(agent, "index", lambda: boats)
        monkeypatch.setattr(agent, "known_names", agent.known_names.__wrapped__)  # without its cache
        assert answers(agent, "How much is the rowing boat for 3 hours?") == ["21.75"]

    def test_unknown_thing_has_no_price(self, agent: Any) -> None:
        assert answers(agent, "How much is a rocket for 3 days?") == [agent.NOT_FOUND]


class TestFollowUps:
    def test_quantity_and_name_are_replaced(self, agent: Any) -> None:
        questions = ("How much are 3 days of the city bike?", "And for 5 days?", "What about the cargo bike?")
        assert answers(agent, *questions) == ["42.00", "70.00", "195.00"]

    def test_another_thing_is_added(self, agent: Any) -> None:
        questions = ("How much are 2 city bikes for 3 days?", "And with two helmets?", "And 5 days?")
        assert answers(agent, *questions) == ["84.00", "102.00", "170.00"]

    def test_deposit_stays_the_topic(self, agent: Any) -> None:
        questions = ("How much is the deposit for an e-bike?", "And for a cargo bike?")
        assert answers(agent, *questions) == ["150.00", "200.00"]

    def test_the_form_of_the_answer_stays(self, agent: Any) -> None:
        replies = answers(agent, "How much is a tandem, as JSON?", "And for 2 days?")
        assert [json.loads(reply)["total"] for reply in replies] == [32.0, 64.0]

    def test_pronoun_takes_the_topic_over(self, agent: Any) -> None:
        questions = ("When does the lake loop tour start?", "How much is it for 3 people?")
        assert answers(agent, *questions)[1] == "72.00"

    def test_section_of_the_same_page(self, agent: Any) -> None:
        summer, winter = answers(agent, "When is the shop open in summer?", "What about winter?")
        assert summer.startswith("From April")
        assert winter.startswith("From November")

    def test_a_new_question_starts_afresh(self, agent: Any) -> None:
        questions = ("How much are 3 days of the city bike?", "Do you accept cash?")
        assert answers(agent, *questions)[1].endswith("but no cash.")


class TestReply:
    def test_tool_calls_are_recorded(self, agent: Any) -> None:
        (reply,) = converse(agent, "How much are 10 days of the city bike plus a helmet?")
        calls = reply["tool_calls"]
        assert [call["name"] for call in calls] == ["search_docs", "search_docs", "search_docs", "calculator"]
        assert calls[-1]["args"] == {"expression": "(14 * 10 + 3 * 10) * (1 - 15 / 100)"}
        assert calls[-1]["result"] == pytest.approx(144.5)
        assert all(call["duration_ms"] >= 0 for call in calls)

    def test_retrieved_passages_are_reported_once(self, agent: Any) -> None:
        (reply,) = converse(agent, "How much are 10 days of the city bike plus a helmet?")
        found = [passage for call in reply["tool_calls"][:-1] for passage in call["result"]]
        assert reply["retrieval_context"] == list(dict.fromkeys(found))

    def test_is_json(self, agent: Any) -> None:
        (reply,) = converse(agent, "Do you accept cash?")
        assert json.loads(json.dumps(reply)) == reply

    def test_a_bare_request_is_enough(self, agent: Any) -> None:
        assert agent.reply({"input": "Do you accept cash?"})["response"].endswith("but no cash.")


class TestSwitch:
    QUESTION = "How much is a trekking bike for 2 days?"

    def test_config(self, agent: Any) -> None:
        assert answers(agent, self.QUESTION) == ["36.00"]
        assert answers(agent, self.QUESTION, ranking="first-match") == ["29.00"]

    def test_environment_wins(self, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUICKSTART_RANKING", "first-match")
        assert answers(agent, self.QUESTION, ranking="bm25") == ["29.00"]

    def test_some_answers_stay_right(self, agent: Any) -> None:
        for question in ("Do you accept cash?", "How much does delivery over 12.5 km cost?"):
            assert answers(agent, question, ranking="first-match") == answers(agent, question)


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

    def test_without_it_there_is_none(self, agent: Any) -> None:
        assert self.unlucky(agent) == set()

    def test_the_seed_says_which(self, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUICKSTART_NOISE", "0.1")
        chosen = []
        for seed in ("1", "2", "1"):
            monkeypatch.setenv("QUICKSTART_SEED", seed)
            chosen.append(self.unlucky(agent))
        assert chosen[0] == chosen[2] != chosen[1]

    def test_the_second_best_passage_answers(self, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        (best,) = converse(agent, "Do you accept cash?")
        monkeypatch.setenv("QUICKSTART_NOISE", "1")
        (second,) = converse(agent, "Do you accept cash?")
        assert second["response"] != best["response"]
        assert second["tool_calls"][0]["result"][0] == best["tool_calls"][0]["result"][1]
        assert len(second["tool_calls"][0]["result"]) <= len(best["tool_calls"][0]["result"])


class TestCommand:
    def run(self, request: str, **environment: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, str(FOLDER / "agent.py")],
            input=request,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
            env=os.environ | environment,
        )
        reply: dict[str, Any] = json.loads(done.stdout)
        return reply

    def test_one_request_one_reply(self) -> None:
        reply = self.run('{"input": "How much is a tandem for 2 days?"}')
        assert reply["response"] == "64.00"
        assert reply["metadata"]["ranking"] == "bm25"

    def test_environment(self) -> None:
        reply = self.run('{"input": "How much is a trekking bike?"}', QUICKSTART_RANKING="first-match")
        assert reply["response"] == "14.50"
