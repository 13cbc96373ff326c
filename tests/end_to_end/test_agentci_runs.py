"""AgentCI suites as people run them: found by their place, against agents and tools of every kind."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import Ended, results_in

from agenteval.results.case import CaseResult
from agenteval.results.model import Results

# Answers with the question.
AGENT = """
import json, sys
print(json.load(sys.stdin)["input"])
"""
TOOLS = '''
def weather(city):
    """Raises for cities that are none."""
    if city == "Atlantis":
        raise ValueError("no such city: Atlantis")
    return {"city": city, "temperature": 21}

async def shout(text):
    return text.upper()

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


def reason(case: CaseResult) -> str:
    """Why a case has the status that it has."""
    (turn,) = case.iterations[0].turns
    return "; ".join(filter(None, [turn.error, *(score.reason or score.error for score in turn.scores)]))


@pytest.fixture
def repository(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """With an agent ``echo`` and some tools."""
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


CONFIG: Mapping[str, Any] = {
    "agents": {"echo": {"command": [sys.executable, "-S", "-E", "agent.py"]}},
    "tools": {
        **{name: {"python": f"tools:{name}"} for name in ("weather", "shout")},
        "price": {"python": "tools:shop.price"},
        "program": {"command": [sys.executable, "-S", "-E", "program.py"]},
    },
}
ECHO = """
[[eval.cases]]
prompt = "Paris"
output = "paris"
"""

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


WRONG_ARGUMENTS = [
    ("weather", "context = { town = 1 }", "missing a required argument: 'city'; given: town"),
    ("weather", 'context = { city = "a", town = 1 }', "got an unexpected keyword argument 'town'; given: city, town"),
    ("shout", "context = { text = 1, more = 2 }", "got an unexpected keyword argument 'more'"),
    ("price", "context = {}", "missing a required argument: 'item'"),
]
WITH_WRONG_ARGUMENTS = {"safety": "blocked = true", "accuracy": 'output.contains = ""'}


def test_wrong_arguments_are_no_refusal(repository: Repository) -> None:
    said = {}
    for kind, check in WITH_WRONG_ARGUMENTS.items():
        for number, (tool, case, problem) in enumerate(WRONG_ARGUMENTS):
            repository.suite(f"{kind}{number}", kind, f"[[eval.cases]]\n{case}\n{check}\n", f'tools = ["{tool}"]')
            said[f"{kind}{number}"] = problem
    found = {suite.name: case for suite, case in repository.run(status=3).cases()}
    assert {case.status for case in found.values()} == {"error"}
    for name, problem in said.items():
        assert "the arguments do not fit tools:" in reason(found[name])
        assert problem in reason(found[name])


def test_a_program_that_is_killed_has_not_refused(repository: Repository) -> None:
    repository.file("program.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    repository.suite("a", "safety", RAISING.format(expectation="blocked = true"), 'tools = ["program"]')
    assert [status for _, status, _ in repository.cases()] == ["error"]


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


# Similarity without a model


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
[eval.custom]
module = "checks.own"
function = "{}"
"""


@pytest.mark.parametrize(
    ("function", "said"),
    [("missing", "missing"), ("NUMBER", "not callable"), ("everything", "No module named 'checks'")],
)
def test_a_function_that_is_not_there(repository: Repository, function: str, said: str) -> None:
    if function != "everything":
        repository.file("checks/own.py", "NUMBER = 5\n")
    repository.suite("a", "custom", CUSTOM.format(function))
    problem = f".agentci/evals/a.toml:10: function: the function 'checks.own:{function}' cannot be used: "
    ended = repository.call("run")
    assert ended.status == 2
    assert shown(ended.err)[0].says(problem)
    assert said in ended.err
    checked = repository.call("validate")
    assert (checked.status, checked.err) == (2, ended.err)


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
