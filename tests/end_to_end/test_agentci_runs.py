"""AgentCI suites as people run them: found by their place, against agents and tools of every kind."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.end_to_end.conftest import Command
from tests.integration.model_server import KEY
from tests.mistakes import shown
from tests.support import ROOT, Answer, Ended, agenteval, results_in, serving

from agenteval.agents.frameworks.scan import Discovered, discover_targets
from agenteval.results.case import CaseResult, Score
from agenteval.results.model import Results

# Answers with the question, or by a table, and says what it was given.
AGENT = """
import json, sys
request = json.load(sys.stdin)
table = json.load(open("replies.json")) if len(sys.argv) > 1 else {}
given = f"with {json.dumps(request['context'])}: " if request["context"] else ""
reply = table.get(request["input"], given + request["input"])
print(json.dumps(reply) if isinstance(reply, dict) else reply)
"""
TOOLS = '''
import dataclasses, decimal

@dataclasses.dataclass
class Point:
    x: int
    y: int

def weather(city, units="metric"):
    """Raises for cities that are none."""
    if city == "Atlantis":
        raise ValueError("no such city: Atlantis")
    return {"city": city, "temperature": 21, "units": units}

async def shout(text):
    return text.upper()

def give(kind):
    return {
        "none": None, "true": True, "number": 2.5, "list": [1, "a"], "nested": {"a": {"b": []}}, "text": "so",
        "point": Point(1, 2), "object": decimal.Decimal("1.5"), "empty": "", "unicode": "Zürich \\U0001f600",
    }[kind]

def clumsy(city):
    return weather(town=city)

def leave(city):
    raise SystemExit("I am out")

class Shop:
    def price(self, item):
        return f"{item}: 3 EUR"

shop = Shop()
'''
# A program that refuses with a message, like the others.
PROGRAM = """
import json, sys
given = json.load(sys.stdin)
if given == {"city": "Atlantis"}:
    sys.exit("no such city: Atlantis")
print(json.dumps({"given": given}))
"""


@dataclass
class Repository:
    """A repository with suites, run by the command in this process."""

    folder: Path
    _command: Command = field(repr=False)

    def file(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def suite(self, name: str, kind: str, cases: str, targets: str = 'agents = ["echo"]', rest: str = "") -> None:
        """A suite; its cases begin in line 6, if there is no ``rest``."""
        head = f'[eval]\ndescription = "{name}"\ntype = "{kind}"\ntargets.{targets}\n{rest}\n'
        self.file(f".agentci/evals/{name}.toml", head + textwrap.dedent(cases))

    def config(self, **keys: Any) -> None:
        self.file("agenteval.yaml", yaml.safe_dump(keys, sort_keys=False))

    def call(self, *arguments: str | Path) -> Ended:
        return self._command(*arguments)

    def run(self, *arguments: str | Path, status: int | None = None) -> Results:
        """A run that came to its end."""
        ended = self._command("run", "--quiet", *arguments)
        assert "internal error" not in ended.err
        assert ended.status != 2, ended.text
        assert status is None or ended.status == status, ended.text
        return results_in(self.folder)

    def cases(self, *arguments: str | Path) -> list[tuple[str, str, str]]:
        """Name, status and reason of every case."""
        return [(case.name, case.status, reason(case)) for _, case in self.run(*arguments).cases()]

    def statuses(self, *arguments: str | Path) -> list[str]:
        return [status for _, status, _ in self.cases(*arguments)]


def reason(case: CaseResult, iteration: int = 0) -> str:
    """Why an iteration of a case has the status that it has."""
    (turn,) = case.iterations[iteration].turns
    return "; ".join(filter(None, [turn.error, *(score.reason or score.error for score in turn.scores)]))


def scores(case: CaseResult) -> list[Score]:
    """The scores of the first answer."""
    return case.iterations[0].turns[0].scores


def responses(results: Results) -> list[str | None]:
    return [turn.response for _, case in results.cases() for run in case.iterations for turn in run.turns]


def command_agent(*arguments: str, **keys: Any) -> dict[str, Any]:
    return {"command": [sys.executable, "-S", "-E", "agent.py", *arguments], **keys}


@pytest.fixture
def repository(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """With agents ``echo`` and ``table`` and some tools."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    return equipped(tmp_path, command)


def equipped(folder: Path, command: Command) -> Repository:
    made = Repository(folder, command)
    made.file("agent.py", AGENT)
    made.file("tools.py", TOOLS)
    made.file("program.py", PROGRAM)
    made.config(**CONFIG)
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Repository]:
    """Makes repositories for runs whose cases several tests read."""

    def make() -> Repository:
        folder = tmp_path_factory.mktemp("shared")
        return equipped(folder, partial(agenteval, cwd=folder))

    return make


# Values of a row of a table
Row = tuple[str, ...]


def cases_of(
    repository: Repository, rows: Iterable[Row], write: Callable[..., None], status: int
) -> dict[Row, CaseResult]:
    """The case of each row, from one run with a suite for each; ``write`` gets its name and the values of the row."""
    names = {row: f"row{number}" for number, row in enumerate(rows)}
    for row, name in names.items():
        write(name, *row)
    found = {suite.name: case for suite, case in repository.run(status=status).cases()}
    return {row: found[name] for row, name in names.items()}


CONFIG: Mapping[str, Any] = {
    "agents": {"echo": command_agent(), "table": command_agent("by-table")},
    "tools": {
        **{name: {"python": f"tools:{name}"} for name in ("weather", "shout", "give", "clumsy", "leave")},
        "price": {"python": "tools:shop.price"},
        "program": {"command": [sys.executable, "-S", "-E", "program.py"]},
    },
}
ECHO = """
[[eval.cases]]
prompt = "Paris"
output = "paris"
"""

# Which suites, agents and cases


def test_ids_do_not_change_with_order_or_expectation(repository: Repository) -> None:
    def ids(cases: str) -> dict[str, str]:
        repository.suite("a", "accuracy", cases)
        return {case.name: case.id for _, case in repository.run().cases()}

    more = '[[eval.cases]]\nprompt = "Rome"\noutput = "rome"\n'
    assert ids(ECHO + more) == ids(more + ECHO) == ids((ECHO + more).replace('"rome"', '"other"'))


def test_without_configuration_validate_reports_unknown_names_as_run_does(repository: Repository) -> None:
    (repository.folder / "agenteval.yaml").unlink()
    repository.suite("a", "accuracy", ECHO, 'agents = ["anyone"]')
    checked = repository.call("validate")
    assert checked.status == 2
    assert "no agent is called 'anyone'" in checked.err
    assert checked.err == repository.call("run").err


def test_filter_and_tag(repository: Repository) -> None:
    repository.suite("a", "accuracy", ECHO + ECHO.replace("Paris", "Lyon").replace("paris", "lyon"))
    repository.suite("b", "safety", '[[eval.cases]]\nprompt = "Paris"\nblocked = false\n')

    assert [name for name, _, _ in repository.cases("--filter", "lyon")] == ["Lyon"]
    assert [name for name, _, _ in repository.cases("-k", "b.toml")] == ["Paris"]
    assert len(repository.cases("--tag", "accuracy")) == 2
    assert len(repository.cases("--tag", "safety", "--tag", "accuracy")) == 3
    assert len(repository.cases("--tag", "accuracy", "--filter", "paris")) == 1
    nothing = repository.call("run", "--tag", "custom")
    first = "agenteval: the reports in agenteval-report/ are those of an earlier run"
    assert (nothing.status, nothing.err.splitlines()[0]) == (2, first)
    assert shown(nothing.err.partition("\n")[2])[0].says("no case matches --tag custom")


@pytest.mark.parametrize("given", ["app", "app/.agentci", "app/.agentci/evals", "app/.agentci/evals/a.toml"])
def test_a_project_in_a_folder(repository: Repository, given: str) -> None:
    """Configuration, tools and functions are those of the folder that holds ``.agentci``."""
    project = Repository(repository.folder / "app", repository.call)
    project.file("tools.py", TOOLS)
    project.file("checks/own.py", CHECKS)
    project.file("checks/words.py", "LENGTH = 3\n")
    project.config(tools={"shout": {"python": "tools:shout"}})
    project.suite("a", "custom", CUSTOM.format("output_only").replace("context", "# context"), 'tools = ["shout"]')
    for name in ("tools.py", "agenteval.yaml"):
        (repository.folder / name).unlink()
    ((suite, case),) = repository.run(given, status=0).cases()

    assert suite.path == "app/.agentci/evals/a.toml"
    assert case.iterations[0].turns[0].response == "PARIS"


def test_agentci_beside_holodeck(repository: Repository) -> None:
    repository.suite("a", "accuracy", ECHO)
    holodeck = {
        "agent": "echo",
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": "h", "input": "x", "ground_truth": "x"}],
    }
    repository.file("agent.yaml", yaml.safe_dump(holodeck))
    assert [suite.format for suite in repository.run(status=0).suites] == ["holodeck", "agentci"]


# Prompt and context


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ('prompt = "Hi"', "Hi"),
        ('prompt = "Hi"\ncontext = { user = "Ann", n = 1 }', 'with {"user": "Ann", "n": 1}: Hi'),
        ('context = { user = "Ann" }', 'with {"user": "Ann"}: {"user": "Ann"}'),
        ('prompt = "Hi"\ncontext = {}', "Hi"),
        ('prompt = "Zoë\\n\\u4F60 \\"q\\""', 'Zoë\n你 "q"'),
    ],
)
def test_agents_get_prompt_and_context(repository: Repository, case: str, answer: str) -> None:
    repository.suite("a", "accuracy", f'[[eval.cases]]\n{case}\noutput.contains = ""\n')
    assert responses(repository.run()) == [answer]


ASKED_TOOLS = [
    ("weather", 'context = { city = "Oslo" }', '{"city": "Oslo", "temperature": 21, "units": "metric"}'),
    (
        "weather",
        'prompt = "not used"\ncontext = { units = "imperial", city = "Rome" }',
        '{"city": "Rome", "temperature": 21, "units": "imperial"}',
    ),
    ("weather", 'prompt = "Oslo"', '{"city": "Oslo", "temperature": 21, "units": "metric"}'),
    ("shout", 'prompt = "hi"', "HI"),
    ("shout", 'context = { text = "ünï" }', "ÜNÏ"),
    ("price", 'context = { item = "Lamp" }', "Lamp: 3 EUR"),
    ("program", 'context = { city = "Oslo", n = [1, 2] }', '{"given": {"city": "Oslo", "n": [1, 2]}}'),
    ("program", 'prompt = "Oslo"', '{"given": "Oslo"}'),
    ("program", "context = {}", '{"given": {}}'),
    ("give", 'prompt = "none"', ""),
    ("give", 'prompt = "true"', "true"),
    ("give", 'prompt = "number"', "2.5"),
    ("give", 'prompt = "list"', '[1, "a"]'),
    ("give", 'prompt = "nested"', '{"a": {"b": []}}'),
    ("give", 'prompt = "text"', "so"),
    ("give", 'prompt = "point"', '{"x": 1, "y": 2}'),
    ("give", 'prompt = "object"', "1.5"),
    ("give", 'prompt = "empty"', ""),
    ("give", 'prompt = "unicode"', "Zürich \U0001f600"),
    ("give", 'context = { kind = "true" }', "true"),
]


@pytest.fixture(scope="module")
def answered_by_tools(shared: Callable[[], Repository]) -> dict[Row, CaseResult]:
    repository = shared()

    def write(name: str, tool: str, case: str) -> None:
        text = f'[[eval.cases]]\n{case}\noutput.contains = ""\n'
        repository.suite(name, "accuracy", text, f'tools = ["{tool}"]')

    return cases_of(repository, [row[:2] for row in ASKED_TOOLS], write, status=1)


@pytest.mark.parametrize(("tool", "case", "answer"), ASKED_TOOLS)
def test_tools_get_the_context_or_the_prompt_alone(
    answered_by_tools: dict[Row, CaseResult], tool: str, case: str, answer: str
) -> None:
    found = answered_by_tools[tool, case]
    assert [turn.response for run in found.iterations for turn in run.turns] == [answer]
    # A check that every answer passes decides nothing.
    assert [score.passed for score in scores(found)] == [None]


def test_dates_and_numbers_of_toml_reach_tools_as_json(repository: Repository) -> None:
    case = """
    [[eval.cases]]
    context = { day = 2024-01-15, at = 2024-01-15T08:00:00Z, n = 1, x = 1.0, yes = true, list = [1, "a"] }
    output.contains = ""
    """
    repository.suite("a", "accuracy", case, 'tools = ["program"]')
    (answer,) = responses(repository.run(status=1))
    assert json.loads(answer or "")["given"] == {
        "day": "2024-01-15",
        "at": "2024-01-15T08:00:00+00:00",
        "n": 1,
        "x": 1.0,
        "yes": True,
        "list": [1, "a"],
    }


def test_a_tool_behind_an_address(repository: Repository) -> None:
    def respond(body: Any) -> Answer:
        if body == {"city": "Atlantis"}:
            return Answer("no such city", status=404, content_type="text/plain")
        return Answer({"error": "down"}, status=503) if body == "fall" else Answer({"given": body})

    cases = """
    [[eval.cases]]
    context = { city = "Oslo" }
    output.schema.given.city = { type = "str", value = "oslo" }

    [[eval.cases]]
    prompt = "Oslo"
    output.schema.given = { type = "str" }

    [[eval.cases]]
    context = { city = "Atlantis" }
    output.contains = "Atlantis"

    [[eval.cases]]
    prompt = "fall"
    output.contains = "x"
    """
    with serving(respond) as service:
        repository.config(tools={"api": {"http": service.url, "headers": {"x-key": "k-1"}}})
        repository.suite("a", "accuracy", cases, 'tools = ["api"]')
        found = repository.cases()

    assert [status for _, status, _ in found] == ["passed", "passed", "error", "error"]
    assert "answered 404 Not Found: no such city" in found[2][2]
    assert "answered 503" in found[3][2]
    assert {headers["x-key"] for headers in service.headers} == {"k-1"}


# Tools that raise


RAISING = """
[[eval.cases]]
context.city = "Atlantis"
{expectation}
"""


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("weather", "ValueError: no such city: Atlantis"),
        ("program", "ended with exit status 1: no such city: Atlantis"),
    ],
)
def test_a_tool_that_refuses_with_an_exception(repository: Repository, tool: str, said: str) -> None:
    targets = f'tools = ["{tool}"]'
    repository.suite("a", "accuracy", RAISING.format(expectation='output.contains = "city"'), targets)
    ((_, status, why),) = repository.cases()
    assert status == "error"
    assert said in why

    repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), targets)
    ((_, status, why),) = repository.cases()
    assert (status, said in why, why.startswith("the tool refused: ")) == ("passed", True, True)

    repository.suite("a", "safety", RAISING.format(expectation="blocked = false"), targets)
    ((_, status, why),) = repository.cases()
    assert status == "failed"
    assert why.startswith("expected an answer, not a refusal; the tool refused: ")


BROKEN = """
def missing(city):
    import no_such_package_anywhere

def unreachable(city):
    import urllib.request
    urllib.request.urlopen("http://127.0.0.1:9/")

def wrapped(city):
    try:
        unreachable(city)
    except OSError as error:
        raise ValueError("no weather") from error

def boom(city):
    raise RuntimeError("boom")
"""


BROKEN_TOOLS = {
    "missing": "ModuleNotFoundError: No module named 'no_such_package_anywhere'",
    "unreachable": "URLError: <urlopen error [Errno 111] Connection refused>",
    "wrapped": "ValueError: no weather",
    "boom": "RuntimeError: boom",
    "clumsy": "TypeError: weather() got an unexpected keyword argument 'town'",
    "leave": "SystemExit: I am out",
    "program": "ModuleNotFoundError: No module named 'no_such_package_anywhere'",
}


@pytest.fixture(scope="module")
def asked_of_broken_tools(shared: Callable[[], Repository]) -> dict[Row, CaseResult]:
    repository = shared()
    repository.file("tools.py", TOOLS + BROKEN)
    repository.file("program.py", "import no_such_package_anywhere\n")
    own = {tool: {"python": f"tools:{tool}"} for tool in ("missing", "unreachable", "wrapped", "boom")}
    repository.config(**{**CONFIG, "tools": {**CONFIG["tools"], **own}})

    def write(name: str, tool: str, blocked: str) -> None:
        repository.suite(name, "safety", RAISING.format(expectation=f"blocked = {blocked}"), f'tools = ["{tool}"]')

    rows = [(tool, blocked) for tool in BROKEN_TOOLS for blocked in ("true", "false")]
    return cases_of(repository, rows, write, status=3)


@pytest.mark.parametrize(("tool", "said"), BROKEN_TOOLS.items())
@pytest.mark.parametrize("blocked", ["true", "false"])
def test_a_broken_tool_has_not_refused(
    asked_of_broken_tools: dict[Row, CaseResult], tool: str, said: str, blocked: str
) -> None:
    found = asked_of_broken_tools[tool, blocked]
    why = reason(found)
    assert (found.status, said in why) == ("error", True), why


WRONG_ARGUMENTS = [
    ("weather", "context = { town = 1 }", "missing a required argument: 'city'; given: town"),
    ("weather", 'context = { city = "a", town = 1 }', "got an unexpected keyword argument 'town'; given: city, town"),
    ("shout", "context = { text = 1, more = 2 }", "got an unexpected keyword argument 'more'"),
    ("price", "context = {}", "missing a required argument: 'item'"),
]
WITH_WRONG_ARGUMENTS = {"safety": "blocked = true", "accuracy": 'output.contains = ""'}


@pytest.fixture(scope="module")
def asked_with_wrong_arguments(shared: Callable[[], Repository]) -> dict[Row, CaseResult]:
    repository = shared()

    def write(name: str, kind: str, tool: str, case: str) -> None:
        text = f"[[eval.cases]]\n{case}\n{WITH_WRONG_ARGUMENTS[kind]}\n"
        repository.suite(name, kind, text, f'tools = ["{tool}"]')

    rows = [(kind, tool, case) for kind in WITH_WRONG_ARGUMENTS for tool, case, _ in WRONG_ARGUMENTS]
    return cases_of(repository, rows, write, status=3)


@pytest.mark.parametrize("kind", WITH_WRONG_ARGUMENTS)
@pytest.mark.parametrize(("tool", "case", "said"), WRONG_ARGUMENTS)
def test_wrong_arguments_are_no_refusal(
    asked_with_wrong_arguments: dict[Row, CaseResult], kind: str, tool: str, case: str, said: str
) -> None:
    found = asked_with_wrong_arguments[kind, tool, case]
    why = reason(found)
    assert found.status == "error"
    assert "the arguments do not fit tools:" in why
    assert said in why


def test_a_program_that_is_killed_has_not_refused(repository: Repository) -> None:
    repository.file("program.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["program"]')
    assert repository.statuses() == ["error"]


@pytest.mark.parametrize("status", [126, 127])
def test_a_program_that_a_shell_cannot_run_has_not_refused(repository: Repository, status: int) -> None:
    repository.file("program.py", f"raise SystemExit({status})\n")
    repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["program"]')
    assert repository.statuses() == ["error"]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, "passed") for status in (400, 403, 409, 422, 451)),
        *((status, "error") for status in (301, 401, 404, 405, 408, 415, 429, 500, 503)),
    ],
)
def test_which_answers_of_an_address_are_refusals(repository: Repository, status: int, outcome: str) -> None:
    with serving(lambda body: Answer("no", status=status)) as service:
        repository.config(tools={"api": {"http": service.url}})
        repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["api"]')
        assert repository.statuses() == [outcome]


def test_a_program_may_print_json_text(repository: Repository) -> None:
    repository.file("program.py", "import json\nprint(json.dumps('Zürich'))\n")
    repository.suite("a", "accuracy", ECHO.replace('"paris"', '"zürich"'), 'tools = ["program"]')
    assert responses(repository.run(status=0)) == ["Zürich"]


def test_a_tool_that_hangs(repository: Repository) -> None:
    repository.file("tools.py", "import time\ndef wait(city):\n    time.sleep(60)\n")
    repository.config(tools={"wait": {"python": "tools:wait", "timeout": 0.5}})
    repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["wait"]')
    ((_, status, why),) = repository.cases()
    assert (status, why) == ("error", "no answer within 0.5 s")


def test_a_slow_import_is_no_slow_answer(repository: Repository) -> None:
    repository.file("tools.py", "import time\ntime.sleep(2.5)\ndef shout(text):\n    return text.upper()\n")
    repository.config(tools={"shout": {"python": "tools:shout", "timeout": 2}})
    repository.suite("a", "accuracy", ECHO, 'tools = ["shout"]')
    assert repository.statuses() == ["passed"]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"python": "missing:call"}, "No module named 'missing'"),
        ({"python": "tools:missing"}, "missing"),
        ({"python": "tools:__name__"}, "__name__"),
        ({"command": ["no-such-program"]}, "no-such-program"),
    ],
)
def test_a_tool_that_is_not_there(repository: Repository, tool: dict[str, Any], said: str) -> None:
    repository.config(tools={"gone": tool})
    repository.suite("a", "accuracy", ECHO, 'tools = ["gone"]')
    ended = repository.call("run")

    assert ended.status == 2
    # The line of what is not there; a program is an item of its command.
    assert shown(ended.err)[0].place == f"agenteval.yaml:{4 if 'command' in tool else 3}"
    assert said in ended.err


# Performance


def test_the_time_of_a_program_is_taken(repository: Repository) -> None:
    cases = (
        '[[eval.cases]]\nprompt = "a"\nlatency = { max = 30 }\n[[eval.cases]]\nprompt = "b"\nlatency = { min = 30 }\n'
    )
    repository.suite("a", "performance", cases, 'agents = ["echo"]\ntargets.tools = ["shout"]')
    assert repository.statuses() == ["passed", "failed"] * 2


# Similarity without a model


@pytest.mark.parametrize(
    ("kind", "cases", "rest", "line"),
    [
        ("accuracy", '[[eval.cases]]\nprompt = "a"\noutput = { similar = "b", threshold = 0.5 }\n', "", 8),
        ("semantic", '[[eval.cases]]\nprompt = "a"\noutput = { similar = "b", threshold = 0.5 }\n', "", 8),
        ("consistency", '[[eval.cases]]\nprompt = "a"\nmin_similarity = 0.5\n', "iterations = 2", 6),
        (
            "accuracy",
            '[[eval.cases]]\nprompt = "a"\n[eval.cases.output.schema]\n'
            'text = { type = "str", value = { similar = "b", threshold = 0.5 } }\n',
            "",
            8,
        ),
    ],
)
def test_without_an_embedding_model_it_says_what_to_do(
    repository: Repository, kind: str, cases: str, rest: str, line: int
) -> None:
    repository.suite("a", kind, cases, rest=rest)
    ended = repository.call("run")

    assert ended.status == 2
    (mistake,) = shown(ended.err)
    assert mistake.says(f".agentci/evals/a.toml:{line}: similarity needs an embedding model, ")
    assert "set OPENAI_API_KEY" in ended.err
    assert "embeddings: ollama/nomic-embed-text\n" in ended.err
    assert "pip install 'agenteval-action[local]'" in ended.err
    assert not (repository.folder / "agenteval-report" / "results.json").exists()


def test_it_is_said_once_however_many_cases_need_it(repository: Repository) -> None:
    case = '[[eval.cases]]\nprompt = "a"\noutput = { similar = "b", threshold = 0.5 }\n'
    for name in ("a", "b"):
        repository.suite(name, "accuracy", case * 3)
    assert repository.call("run").err.count("needs an embedding model") == 1


def test_a_model_that_cannot_be_is_named_with_its_line(repository: Repository) -> None:
    case = '[[eval.cases]]\nprompt = "a"\n[eval.consistency]\nmodel = "anthropic/claude-3"\n'
    repository.suite("a", "consistency", case, rest="iterations = 2")
    ended = repository.call("validate")
    assert ended.status == 2
    assert shown(ended.err)[0].says(
        "a.toml:9: eval.consistency.model: anthropic has no embedding models; use openai/…"
    )


# Functions of the user


CUSTOM = """
[[eval.cases]]
prompt = "Paris"
context = {{ user = "Ann" }}
parameters = {{ threshold = 0.8, words = ["a", "b"], deep = {{ x = 1 }} }}

[eval.custom]
module = "checks.own"
function = "{}"
"""
CHECKS = (
    f"NUMPY = {str(Path(numpy.__file__).parents[1])!r}"
    + """
import asyncio, json
from checks.words import LENGTH

def everything(output, parameters, prompt=None, context=None):
    given = {"output": output, "parameters": parameters, "prompt": prompt, "context": context}
    return {"passed": True, "score": 0.25, "message": json.dumps(given, sort_keys=True), "metadata": {"n": LENGTH}}

def by_keyword(output, parameters, **kwargs):
    return {"passed": sorted(kwargs) == ["context", "prompt"]}

def output_only(output):
    return True

async def slow(output, parameters):
    await asyncio.sleep(0.01)
    return {"passed": False, "score": 0.9, "message": "no"}

def returns_coroutine(output, parameters):
    return slow(output, parameters)

def no(output, parameters):
    return False

def low_but_passed(output, parameters):
    return {"passed": True, "score": 0.0}

def text(output, parameters):
    return "fine"

def nothing(output, parameters):
    return None

def without_passed(output, parameters):
    return {"score": 1.0}

def of_numpy(output, parameters):
    import sys
    sys.path.append(NUMPY)
    import numpy

    score = numpy.float32(0.5)
    array = numpy.array([1.5, 2.0])
    return {"passed": score >= 0.5, "score": score, "metadata": {"share": numpy.float64(0.25), "array": array}}

def metadata_as_text(output, parameters):
    return {"passed": True, "metadata": "much"}

def passed_as_text(output, parameters):
    return {"passed": "yes"}

def score_above(output, parameters):
    return {"passed": True, "score": 7}

def score_text(output, parameters):
    return {"passed": True, "score": "high"}

def score_nan(output, parameters):
    return {"passed": True, "score": float("nan")}

def raises(output, parameters):
    raise KeyError("threshold")

def leaves(output, parameters):
    raise SystemExit(4)

def odd_metadata(output, parameters):
    return {"passed": True, "message": 5, "metadata": {1: {2, 3}, "when": object}}

NUMBER = 5
"""
)


FUNCTIONS = re.findall(r"(?m)^(?:async )?def (\w+)", CHECKS)


@pytest.fixture(scope="module")
def judged_by_functions(shared: Callable[[], Repository]) -> dict[Row, CaseResult]:
    repository = shared()
    repository.file("checks/own.py", CHECKS)
    repository.file("checks/words.py", "LENGTH = 3\n")

    def write(name: str, function: str) -> None:
        repository.suite(name, "custom", CUSTOM.format(function))

    return cases_of(repository, [(function,) for function in FUNCTIONS], write, status=3)


def test_a_function_gets_all_there_is(judged_by_functions: dict[Row, CaseResult]) -> None:
    found = judged_by_functions["everything",]
    (score,) = scores(found)

    assert (found.status, score.status, score.score, score.passed) == ("passed", "scored", 0.25, True)
    assert json.loads(score.reason or "") == {
        "output": 'with {"user": "Ann"}: Paris',
        "parameters": {"threshold": 0.8, "words": ["a", "b"], "deep": {"x": 1}},
        "prompt": "Paris",
        "context": {"user": "Ann"},
    }
    assert score.details == {"n": 3}


@pytest.mark.parametrize(
    ("function", "status", "score", "said"),
    [
        ("by_keyword", "passed", 1.0, None),
        ("output_only", "passed", 1.0, None),
        ("slow", "failed", 0.9, "no"),
        ("returns_coroutine", "failed", 0.9, "no"),
        ("no", "failed", 0.0, None),
        ("low_but_passed", "passed", 0.0, None),
        ("odd_metadata", "passed", 1.0, "5"),
        ("of_numpy", "passed", 0.5, None),
    ],
)
def test_what_a_function_may_return(
    judged_by_functions: dict[Row, CaseResult], function: str, status: str, score: float, said: str | None
) -> None:
    found = judged_by_functions[function,]
    assert (found.status, scores(found)[0].score, scores(found)[0].reason) == (status, score, said)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("text", "the evaluation function returned str; it must return a dict with 'passed' (true or false)"),
        ("nothing", "the evaluation function returned NoneType; it must return a dict"),
        ("without_passed", "returned a dict without a boolean 'passed'"),
        ("metadata_as_text", "the evaluation function returned str as 'metadata', not a dict"),
        ("passed_as_text", "returned a dict without a boolean 'passed'"),
        ("score_above", "the score 7 is outside 0..1"),
        ("score_text", "high"),
        ("score_nan", "nan"),
        ("raises", "KeyError: 'threshold'"),
        ("leaves", "SystemExit: 4"),
    ],
)
def test_what_it_may_not(judged_by_functions: dict[Row, CaseResult], function: str, said: str) -> None:
    found = judged_by_functions[function,]
    assert (found.status, scores(found)[0].status) == ("error", "error")
    assert said in (scores(found)[0].error or "")


@pytest.mark.parametrize(
    ("function", "said"),
    [("missing", "missing"), ("NUMBER", "not callable"), ("everything", "No module named 'checks'")],
)
def test_a_function_that_is_not_there(repository: Repository, function: str, said: str) -> None:
    if function != "everything":
        repository.file("checks/own.py", CHECKS)
        repository.file("checks/words.py", "LENGTH = 3\n")
    repository.suite("a", "custom", CUSTOM.format(function))
    problem = f".agentci/evals/a.toml:13: function: the function 'checks.own:{function}' cannot be used: "
    ended = repository.call("run")
    assert ended.status == 2
    assert shown(ended.err)[0].says(problem)
    assert said in ended.err
    checked = repository.call("validate")
    assert (checked.status, checked.err) == (2, ended.err)


def test_numbers_of_numpy_are_numbers_in_the_report(judged_by_functions: dict[Row, CaseResult]) -> None:
    assert scores(judged_by_functions["of_numpy",])[0].details == {"share": 0.25, "array": [1.5, 2.0]}


def test_a_module_that_raises_when_imported(repository: Repository) -> None:
    repository.file("checks/own.py", "raise RuntimeError('no licence')\n")
    repository.suite("a", "custom", CUSTOM.format("any"))
    ended = repository.call("run")
    # The name of the grader is right: the change cannot be judged, and its suite is not wrong.
    assert ended.status == 3
    assert "RuntimeError: no licence" in ended.err


def test_a_function_on_what_a_tool_returned(repository: Repository) -> None:
    repository.file("checks/own.py", CHECKS)
    repository.file("checks/words.py", "LENGTH = 3\n")
    case = '[[eval.cases]]\ncontext = { city = "Oslo" }\n'
    own = '\n[eval.custom]\nmodule = "checks.own"\nfunction = "everything"\n'
    repository.suite("a", "custom", case + own, 'tools = ["weather"]')
    ((_, found),) = repository.run().cases()
    given = json.loads(scores(found)[0].reason or "")

    assert json.loads(given["output"])["city"] == "Oslo"
    assert (given["prompt"], given["context"], given["parameters"]) == (None, {"city": "Oslo"}, {})


# Safety templates


def test_injections_into_a_database(repository: Repository) -> None:
    repository.file(
        "db.py",
        """
        import sqlite3

        def _rows(sql, *values):
            connection = sqlite3.connect(":memory:")
            connection.execute("CREATE TABLE users (id, name)")
            connection.execute("INSERT INTO users VALUES (1, 'Ann'), (2, 'Bob')")
            return [list(row) for row in connection.execute(sql, values)]

        def careless(name):
            return _rows(f"SELECT id, name FROM users WHERE name = '{name}'")

        def careful(name):
            return _rows("SELECT id, name FROM users WHERE name = ?", name)
        """,
    )
    repository.config(tools={name: {"python": f"db:{name}"} for name in ("careless", "careful")})
    repository.suite("a", "safety", "", 'tools = ["careful"]', rest='template = "sql_injection"')
    careful = repository.cases()
    repository.suite("a", "safety", "", 'tools = ["careless"]', rest='template = "sql_injection"')
    careless = repository.cases()

    assert [(name, why) for name, status, why in careful if status != "passed"] == []
    assert len(careless) == len(careful) >= 4
    assert [status for _, status, _ in careless].count("failed") >= 1


# Agents and tools of a framework


FRAMEWORK = """
[framework]
name = "homemade"
dependencies = ["homemade"]

[[agents]]
path = "homemade.Bot"
args.model = "model"
args.prompt = "instructions"
execution.method = "talk"
execution.args.prompt = "message"

[[tools]]
type = "decorator"
path = "homemade.tool"
execution.method = "use"
"""
HOMEMADE = """
class Bot:
    def __init__(self, model, instructions=""):
        self.model = model

    async def talk(self, message):
        calls = [{"name": "search", "args": {"q": message}}]
        return {"output": f"{self.model} says {message}", "tool_calls": calls}

class tool:
    def __init__(self, function):
        self.function = function

    def use(self, **arguments):
        return self.function(**arguments)
"""
APP = """
from homemade import Bot, tool

support_bot = Bot(model="big", instructions="Help.")
sales_bot = Bot(model="small")

@tool
def stock(item: str) -> dict:
    if item == "nothing":
        raise LookupError("no such item")
    return {"item": item, "left": 3}
"""


@pytest.fixture
def with_framework(repository: Repository) -> Repository:
    (repository.folder / "agenteval.yaml").unlink()
    repository.file(".agentci/frameworks/homemade.toml", FRAMEWORK)
    repository.file("homemade.py", HOMEMADE)
    repository.file("shop/app.py", APP)
    return repository


def test_targets_of_a_framework_run(with_framework: Repository) -> None:
    cases = '[[eval.cases]]\nprompt = "hi"\noutput = "big says hi"\ntools = [{ name = "search", args = ["hi"] }]\n'
    with_framework.suite("agents", "accuracy", cases, 'agents = ["support-bot", "sales_bot"]')
    tools = """
    [[eval.cases]]
    context = { item = "lamp" }
    output.schema.left = { type = "int", min = 1 }
    [[eval.cases]]
    context = { item = "nothing" }
    output.contains = "x"
    """
    with_framework.suite("tools", "accuracy", tools, 'tools = ["stock"]')
    found = with_framework.cases()

    assert [(name, status) for name, status, _ in found] == [
        ("hi [support-bot]", "passed"),
        ("hi [sales_bot]", "failed"),
        ('{"item": "lamp"}', "passed"),
        ('{"item": "nothing"}', "error"),
    ]
    assert found[1][2] == "expected 'big says hi', got 'small says hi'"
    assert "LookupError: no such item" in found[3][2]


def test_a_star_is_all_of_a_framework(with_framework: Repository) -> None:
    case = '[[eval.cases]]\nprompt = "hi"\noutput.contains = "hi"\n'
    with_framework.suite("a", "accuracy", case, 'agents = ["*"]')
    assert sorted(name for name, _, _ in with_framework.cases()) == ["hi [sales_bot]", "hi [support_bot]"]


def test_names_of_agenteval_yaml_win(with_framework: Repository) -> None:
    with_framework.config(agents={"support-bot": command_agent()})
    case = '[[eval.cases]]\nprompt = "hi"\noutput = "hi"\n'
    with_framework.suite("a", "accuracy", case, 'agents = ["support-bot", "sales-bot"]')
    assert with_framework.statuses() == ["passed", "failed"]


def test_a_name_that_no_framework_defines(with_framework: Repository) -> None:
    with_framework.suite("a", "accuracy", ECHO, 'agents = ["suport-bot"]')
    ended = with_framework.call("run")
    assert ended.status == 2
    assert "no agent is called 'suport-bot'; did you mean 'support_bot'?" in ended.err
    assert "sales_bot" in ended.err


@pytest.mark.long
def test_agents_of_a_framework_that_needs_no_description(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
    (repository.folder / "agenteval.yaml").unlink()
    repository.file(
        "pyproject.toml", '[project]\nname = "shop"\nversion = "1"\ndependencies = ["pydantic-ai-slim>=1"]\n'
    )
    repository.file(
        "shop/agents.py",
        """
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel

        helper = Agent(TestModel(call_tools=["stock"], custom_output_text="Three lamps are left."))

        @helper.tool_plain
        def stock(item: str) -> int:
            return 3
        """,
    )
    case = '[[eval.cases]]\nprompt = "How many lamps?"\noutput = "three lamps are left."\n'
    repository.suite("a", "accuracy", case + 'tools = [{ name = "stock", args = {} }]\n', 'agents = ["helper"]')
    limits = '[[eval.cases]]\nprompt = "How many lamps?"\ntokens = { min = 1 }\n'
    repository.suite("b", "performance", limits, 'agents = ["helper"]')

    assert [(status, why.partition(";")[0][:4]) for _, status, why in repository.cases()] == [
        ("passed", ""),
        ("passed", "mean"),
    ]


def test_what_could_not_be_searched_is_a_warning(with_framework: Repository) -> None:
    with_framework.file("shop/broken.py", "import homemade\ndef (:\n")
    for name in ("a", "b"):
        with_framework.suite(name, "accuracy", ECHO, 'agents = ["support-bot"]')
    ended = with_framework.call("run", "--quiet")

    assert ended.status == 1, ended.text
    assert "warning: shop/broken.py" in ended.out


def test_the_source_code_is_searched_once(with_framework: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def search(root: Path) -> Discovered:
        searched.append(root)
        return discover_targets(root)

    monkeypatch.setattr("agenteval.run.resolve.suites.discover_targets", search)
    for name in ("a", "b", "c"):
        with_framework.suite(name, "accuracy", ECHO, 'agents = ["support-bot", "sales-bot"]')
    assert len(with_framework.cases()) == 6
    assert searched == [with_framework.folder]


def test_what_agenteval_yaml_defines_is_not_searched_for(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(root: Path) -> Discovered:
        raise AssertionError(f"{root} was searched")

    monkeypatch.setattr("agenteval.run.resolve.suites.discover_targets", search)
    repository.suite("a", "accuracy", ECHO, 'agents = ["*"]\ntargets.tools = ["shout"]')
    repository.file("replies.json", "{}")
    assert repository.statuses() == ["passed"] * 3


def test_a_broken_description_is_named_once(with_framework: Repository) -> None:
    with_framework.file(".agentci/frameworks/homemade.toml", FRAMEWORK.replace("[[tools]]", "[[tool]]"))
    for name in ("a", "b"):
        with_framework.suite(name, "accuracy", ECHO, 'agents = ["support-bot"]')
    ended = with_framework.call("run")

    assert ended.status == 2
    found = [
        mistake.says("homemade.toml:13: tool: unknown key; did you mean 'tools'?") for mistake in shown(ended.err)
    ]
    assert found.count(True) == 1


def test_an_agent_that_cannot_be_imported(with_framework: Repository) -> None:
    with_framework.file("shop/app.py", APP + "\nraise RuntimeError('no key')\n")
    with_framework.suite("a", "accuracy", ECHO, 'agents = ["support-bot"]')
    ended = with_framework.call("run")
    assert ended.status == 3
    assert shown(ended.err)[0].place.endswith("shop/app.py:4")
    assert "RuntimeError: no key" in ended.err


# Judges that are not there


def test_a_judge_without_a_key(repository: Repository) -> None:
    case = '[[eval.cases]]\nprompt = "a"\nscore = { min = 7 }\n\n[eval.llm]\nmodel = "gpt-4"\nprompt = "Judge."\n'
    repository.suite("a", "llm", case)
    ended = repository.call("run")
    assert ended.status == 2
    assert shown(ended.err)[0].says("a.toml:8: no API key for openai/gpt-4: set OPENAI_API_KEY")


def test_a_judge_that_cannot_be_reached(repository: Repository) -> None:
    repository.config(
        **CONFIG,
        judge={"model": "openai/gpt-4", "endpoint": "http://127.0.0.1:1/v1", "api_key": KEY},
        llm={"retries": 0},
    )
    repository.suite("a", "safety", '[[eval.cases]]\nprompt = "a"\nblocked = true\n')
    ((_, status, why),) = repository.cases()
    assert status == "error"
    assert "openai/gpt-4 cannot be reached" in why


# Reports


def test_results_follow_their_schema_and_compare_with_a_baseline(repository: Repository) -> None:
    schema = json.loads((ROOT / "schemas" / "results.schema.json").read_text(encoding="utf-8"))
    call = {"name": "buy", "args": {"id": 7}}

    def spent(tokens: int) -> dict[str, int]:
        return {"input_tokens": 3, "output_tokens": tokens}

    repository.file(
        "replies.json", json.dumps({"order": {"response": "Done", "tool_calls": [call], "usage": spent(4)}})
    )
    accuracy = '[[eval.cases]]\nprompt = "order"\noutput = "done"\ntools = [{ name = "buy", args = [7] }]\n'
    repository.suite("accuracy", "accuracy", accuracy, 'agents = ["table"]')
    limits = '[[eval.cases]]\nprompt = "order"\nlatency.max = 60\ntokens.max = 7\n'
    repository.suite("performance", "performance", limits, 'agents = ["table"]', rest="iterations = 2")
    repository.suite("safety", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["weather"]')
    repository.suite("tools", "accuracy", RAISING.format(expectation='output = "x"'), 'tools = ["give"]')
    repository.file("checks/own.py", CHECKS)
    repository.file("checks/words.py", "LENGTH = 3\n")
    repository.suite("custom", "custom", CUSTOM.format("everything"))

    def results() -> dict[str, Any]:
        text = (repository.folder / "agenteval-report" / "results.json").read_text(encoding="utf-8")
        produced: dict[str, Any] = json.loads(text)
        Draft202012Validator(schema).validate(produced)
        return produced

    repository.run("--fail-on", "none")
    first = results()
    assert first["summary"]["errors"] == 1
    assert first["summary"]["passed"] == 4
    (repository.folder / "agenteval-report").rename(repository.folder / "before")

    repository.file("replies.json", json.dumps({"order": {"response": "No", "tool_calls": [], "usage": spent(5)}}))
    repository.run("--baseline", "before")
    second = results()

    assert (second["summary"]["passed"], second["summary"]["failed"]) == (2, 2)
    # The cases are the same ones, so each is compared with itself.
    listed = [case["id"] for suite in first["suites"] for case in suite["cases"]]
    assert [case["id"] for suite in second["suites"] for case in suite["cases"]] == listed
    assert sorted(case["id"] for case in second["comparison"]["cases"]) == sorted(listed)


def test_an_unchanged_run_has_no_regressions(repository: Repository) -> None:
    repository.suite("a", "accuracy", ECHO)
    repository.run(status=0)
    (repository.folder / "agenteval-report").rename(repository.folder / "before")
    results = repository.run("--baseline", "before", status=0)

    assert results.comparison is not None
    assert [case.change for case in results.comparison.cases] == ["same"]


def test_in_a_process_of_its_own(repository: Repository) -> None:
    repository.suite("a", "accuracy", ECHO)
    ended = agenteval("run", cwd=repository.folder)
    assert (ended.status, ended.err.splitlines()[0]) == (0, "running 1 case")


def test_secrets_of_the_environment_stay_secret(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "tok-0123456789")
    context = 'context = { token = "${SERVICE_TOKEN}" }'
    case = f'[[eval.cases]]\nprompt = "hi"\n{context}\noutput.contains = "tok-0123456789"\n'
    repository.suite("a", "accuracy", case)
    ended = repository.call("run")

    assert ended.status == 0, ended.text
    written = [path for path in (repository.folder / "agenteval-report").rglob("*") if path.is_file()]
    assert [path.name for path in written if "tok-0123456789" in path.read_text(encoding="utf-8")] == []
