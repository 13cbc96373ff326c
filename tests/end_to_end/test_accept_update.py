"""``agenteval accept --update``: answers of a run become expected answers, through the program."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.judged_repository import Repository, made_repository
from tests.mistakes import shown
from tests.support import Ended, python_agent, results_in, statuses

ACCEPTED = ".agenteval/accepted.yaml"
# In many styles, which stay.
CASES = """\
test_cases:
# The first one.
- name: c0   # plain
  input: question c0
  ground_truth: question c0  # expected
- {input: question c1, name: c1, ground_truth: 'question c1'}
- name: c2
  input: question c2
  ground_truth: |-
    question c2

- "name": "c3"
  "input": "question c3"
  "ground_truth": "question c3"
- name: c4
  input: question c4
  ground_truth: question c4
- name: c5
  input: question c5
  ground_truth: question c5
"""


@pytest.fixture
def repository(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return made_repository(command, tmp_path, monkeypatch, CASES)


def update(repository: Repository, *names: str) -> Ended:
    return repository.command("accept", *names, "--update", "--reason", "the tariff changed")


def suite_text(repository: Repository) -> str:
    return (repository.folder / "agent.yaml").read_text(encoding="utf-8")


def test_new_answers_are_expected_and_nothing_else_changes(repository: Repository) -> None:
    before = suite_text(repository)
    repository.break_agent("question c0", "question c1", "question c2", "question c3")
    assert repository.compared().status == 1
    done = update(repository, "c0", "c1", "c2", "agent.yaml::c3")
    assert done.status == 0, done.text
    assert "\n-  ground_truth: question c0  # expected\n" in done.out
    assert "\n+  ground_truth: wrong  # expected\n" in done.out
    assert suite_text(repository) == (
        before.replace("ground_truth: question c0  #", "ground_truth: wrong  #")
        .replace("'question c1'", "'wrong'")
        .replace("    question c2\n", "    wrong\n")
        .replace('truth": "question c3"', 'truth": "wrong"')
    )
    entries = yaml.safe_load((repository.folder / ACCEPTED).read_text(encoding="utf-8"))["accepted"]
    assert [(entry["case"], entry["change"]) for entry in entries] == [
        (f"agent.yaml::c{number}", "edited") for number in range(4)
    ]
    assert [(entry["before"], entry["after"]) for entry in entries] == [
        (f"question c{number}", "wrong") for number in range(4)
    ]
    ended = repository.compared()
    assert ended.status == 0, ended.text
    assert "(edited) were accepted by a@b.c: the tariff changed" in ended.text


VARYING = """
import random
def reply(request):
    return str(random.random())
"""
LONG = """
def reply(request):
    return "long " * 100_000
"""
SECRET = """
def reply(request):
    return "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
"""
VARIABLE = """
def reply(request):
    return "costs ${PRICE}"
"""
BROKEN = """
def reply(request):
    raise RuntimeError("no")
"""


@pytest.mark.parametrize(
    ("code", "at", "said"),
    [
        (VARYING, "- name: c0   # plain", "has 3 different answers in its iterations"),
        (LONG, "- name: c0   # plain", "only the beginning"),
        (SECRET, "- name: c0   # plain", "has an answer with a secret"),
        (BROKEN, "- name: c0   # plain", "was not answered in every iteration"),
        (VARIABLE, "  ground_truth: question c0  # expected", "contains the variable ${PRICE}"),
    ],
)
def test_an_answer_that_is_not_certain_is_refused_with_its_line(
    repository: Repository, code: str, at: str, said: str
) -> None:
    before = suite_text(repository)
    (repository.folder / "agent.py").write_text(code, encoding="utf-8")
    repository.run("--fail-on", "none")
    done = update(repository, "c0")
    assert done.status == 2, done.text
    (mistake,) = shown(done.err)
    assert mistake.place == f"agent.yaml:{before.splitlines().index(at) + 1}"
    assert mistake.says(said), done.err
    assert suite_text(repository) == before
    assert not (repository.folder / ACCEPTED).exists()


def test_of_several_cases_none_is_written_if_one_cannot_be(repository: Repository) -> None:
    before = suite_text(repository)
    anchored = before.replace("ground_truth: question c5", "ground_truth: &five question c5")
    (repository.folder / "agent.yaml").write_text(anchored, encoding="utf-8")
    repository.break_agent("question c0", "question c5")
    repository.run()
    done = update(repository)
    assert done.status == 2, done.text
    line = next(number for number, text in enumerate(anchored.splitlines(), 1) if "&five" in text)
    (mistake,) = shown(done.err)
    assert mistake.says(f"agent.yaml:{line}: test_cases[5].ground_truth: depends on the anchor 'five'"), done.err
    assert suite_text(repository) == anchored
    assert not (repository.folder / ACCEPTED).exists()


def test_a_failure_while_writing_restores_the_suites(repository: Repository) -> None:
    repository.break_agent("question c0")
    repository.run()
    # The folder of the accepted changes, which is written last, cannot be made.
    (repository.folder / ".agenteval").write_text("", encoding="utf-8")
    before = suite_text(repository)
    done = update(repository, "c0")
    assert done.status == 3, done.text
    assert suite_text(repository) == before


EVAL = """\
[eval]
description = "prices"
type = "accuracy"
targets.agents = ["shop", "{second}"]

[[eval.cases]]
prompt = "one"
output = 'question c0'   # the price

[[eval.cases]]
prompt = "two"
output = {{ exact = "two" }}

[[eval.cases]]
prompt = "three"
output = {{ contains = "four" }}
"""


@pytest.fixture
def agentci(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".agentci" / "evals").mkdir(parents=True)
    shop = python_agent(tmp_path, "def reply(request):\n    return 'now ' + request['input']\n")
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump({"agents": {"shop": shop, "other": shop}}))
    return tmp_path


def evaluate(agentci: Path, command: Command, second: str) -> str:
    text = EVAL.format(second=second)
    (agentci / ".agentci" / "evals" / "prices.toml").write_text(text, encoding="utf-8")
    ended = command("run", "--quiet")
    assert ended.status == 1, ended.text
    return text


def test_exact_outputs_of_agentci_are_updated(agentci: Path, command: Command) -> None:
    text = evaluate(agentci, command, "shop")
    done = command("accept", "one", "two", "--update", "--reason", "x")
    assert done.status == 0, done.text
    assert (agentci / ".agentci" / "evals" / "prices.toml").read_text(encoding="utf-8") == (
        text.replace("'question c0'", "'now one'").replace('"two" }', '"now two" }')
    )
    command("run", "--quiet")
    assert statuses(results_in(agentci)) == {"one": "passed", "two": "passed", "three": "failed"}
    done = command("accept", "three", "--update", "--reason", "x")
    assert done.status == 2, done.text
    (mistake,) = shown(done.err)
    assert mistake.says(".agentci/evals/prices.toml:14: three: expects no whole text"), done.err
