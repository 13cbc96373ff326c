"""Ten broken suites beside two good ones: one run names every mistake with its place, and says which are fine."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import agenteval

GOOD = """\
[eval]
description = "Sums"
type = "accuracy"
targets.agents = ["echo"]

[[eval.cases]]
prompt = "4"
output = "4"
"""


def accuracy(rest: str, targets: str = 'targets.agents = ["echo"]') -> str:
    """A suite whose first case, or whatever else it has, begins in line 6."""
    return f'[eval]\ndescription = "Broken"\ntype = "accuracy"\n{targets}\n\n{rest}'


CASE = '[[eval.cases]]\nprompt = "4"\n'
# File → its text, and what is said about it: the place, what is wrong, what to do.
BROKEN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "a-syntax": (
        accuracy(CASE + 'output = "4"\noutput.exact = "4"\n'),
        ("a-syntax.toml:9: not valid TOML: this key already has a value", "keep one of the two: "),
    ),
    "b-quotes": (
        accuracy(CASE + "output = Paris\n"),
        ("b-quotes.toml:8: not valid TOML: this is not a value; a text needs quotes",),
    ),
    "c-several-lines": (
        accuracy(CASE + 'output = {\n  similar = "4",\n  threshold = 0.8\n}\n'),
        ("c-several-lines.toml:8: not valid TOML: ", "{…} must be on one line"),
    ),
    "d-misspelt": (
        accuracy('[[eval.cases]]\nprompt = "4"\noutput.contain = "4"\n'),
        ("d-misspelt.toml:8: eval.cases[0].output.contain: unknown key; did you mean 'contains'?",),
    ),
    "e-expected": (
        accuracy(CASE + 'expected.exact = "4"\n'),
        ("e-expected.toml:8: eval.cases[0].expected: unknown key; here it is called 'output'; allowed: ",),
    ),
    "f-type": (
        accuracy(CASE + 'output = "4"\n').replace('"accuracy"', '"acuracy"'),
        ("f-type.toml:3: eval.type: 'acuracy' is not allowed; did you mean 'accuracy'?; allowed: accuracy, ",),
    ),
    "g-nothing-expected": (
        accuracy(CASE),
        ("g-nothing-expected.toml:6: eval.cases[0]: a case of type accuracy needs `output` or `tools`",),
    ),
    "h-schema": (
        accuracy(CASE + '[eval.cases.output.schema]\nsize = { type = "flaot" }\nname = { type = "str", min = 1 }\n'),
        (
            "h-schema.toml:9: eval.cases[0].output.schema.size.type: no type is called 'flaot'; "
            "did you mean 'float'?; allowed: str, int, float, ",
            "h-schema.toml:10: eval.cases[0].output.schema.name.min: `min` is for numbers (int, float), not for str",
        ),
    ),
    "i-unknown-target": (
        accuracy(CASE + 'output = "4"\n', 'targets.agents = ["ecko"]'),
        (
            "i-unknown-target.toml:4: eval.targets.agents: no agent is called 'ecko'; did you mean 'echo'?; known: "
            "echo; define it in agenteval.yaml:\n    agents:\n      ecko:\n        command: [python, agent.py]",
        ),
    ),
    "j-unset-variable": (
        accuracy('[[eval.cases]]\nprompt = "${QUESTION}"\noutput = "4"\n'),
        (
            "j-unset-variable.toml:7: environment variable QUESTION is not set; set it, "
            "or write ${QUESTION:-default}\n",
        ),
    ),
}
ELEVEN = 11  # One of the ten files has two mistakes.
COMMANDS = pytest.mark.parametrize("name", ["validate", "run"])


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    """The folder of suites, with two good ones, in a repository whose agent answers with the question."""
    code = "import json, sys\nprint(json.load(sys.stdin)['input'])\n"
    (tmp_path / "echo.py").write_text(code, encoding="utf-8")
    config = {"agents": {"echo": {"command": [sys.executable, "-S", "-E", "echo.py"]}}}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    folder = tmp_path / ".agentci" / "evals"
    folder.mkdir(parents=True)
    for name in ("good", "zen"):
        (folder / f"{name}.toml").write_text(GOOD, encoding="utf-8")
    return folder


def write_broken(folder: Path) -> None:
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


@COMMANDS
@pytest.mark.parametrize("given", [(), (".agentci/evals/*",), (".",)], ids=["found", "files", "directory"])
def test_all_are_named_in_one_go(evals: Path, command: Command, name: str, given: tuple[str, ...]) -> None:
    write_broken(evals)
    arguments = sorted(evals.iterdir()) if given and "*" in given[0] else given
    ended = command(name, *arguments)

    assert ended.status == 2
    said = shown(ended.err)
    parts = [part for _, parts in BROKEN.values() for part in parts]
    assert [part for part in parts if not any(mistake.says(part) for mistake in said)] == []
    assert len(said) + sum(mistake.more for mistake in said) == ELEVEN
    assert "; nothing was run (exit status 2)\n" in ended.err
    assert "Traceback" not in ended.text


def test_validate_lists_the_good_ones(evals: Path, command: Command) -> None:
    assert command("validate").out == (
        "agenteval.yaml: ok, 1 agent\n"
        ".agentci/evals/good.toml: ok, agentci, 1 case\n"
        ".agentci/evals/zen.toml: ok, agentci, 1 case\n"
    )


@COMMANDS
def test_the_good_ones_are_named_last(evals: Path, command: Command, tmp_path: Path, name: str) -> None:
    write_broken(evals)
    ended = command(name)

    last = ended.err.splitlines()[-1]
    assert last == "without problems: .agentci/evals/good.toml, .agentci/evals/zen.toml"
    assert (ended.out, (tmp_path / "agenteval-report").exists()) == ("", False)


@COMMANDS
@pytest.mark.parametrize("broken", BROKEN)
def test_each_alone(evals: Path, command: Command, name: str, broken: str) -> None:
    text, parts = BROKEN[broken]
    (evals / f"{broken}.toml").write_text(text, encoding="utf-8")
    ended = command(name)

    assert ended.status == 2
    assert [part for part in parts if not any(mistake.says(part) for mistake in shown(ended.err))] == []
    good = ended.err.splitlines()[-1]
    assert ".agentci/evals/good.toml" in good
    assert ".agentci/evals/zen.toml" in good
    assert broken not in good


@COMMANDS
def test_a_broken_configuration_does_not_hide_broken_suites(evals: Path, command: Command, name: str) -> None:
    write_broken(evals)
    (evals.parent.parent / "agenteval.yaml").write_text("agents: {echo: {comand: [cat]}}\n", encoding="utf-8")
    ended = command(name)

    assert ended.status == 2
    found = shown(ended.err)
    wrong = "agenteval.yaml:1: agents.echo.comand: unknown key; did you mean 'command'?"
    assert any(mistake.says(wrong) for mistake in found)
    # What it should define is not complained about.
    assert "no agent is called" not in ended.err
    assert any(mistake.says("b-quotes.toml:8: not valid TOML") for mistake in found)
    good = ended.err.splitlines()[-1]
    assert ".agentci/evals/good.toml" in good


@COMMANDS
def test_a_suite_that_is_not_there(evals: Path, command: Command, name: str) -> None:
    ended = command(name, evals / "good.toml", "missing.toml")

    assert ended.status == 2
    assert any(mistake.says("missing.toml: no such suite file") for mistake in shown(ended.err))
    good = ended.err.splitlines()[-1]
    assert ".agentci/evals/good.toml" in good


def test_nothing_is_said_about_good_ones_where_all_are_broken(evals: Path, command: Command) -> None:
    for path in list(evals.iterdir()):
        path.unlink()
    write_broken(evals)
    assert "without problems" not in command("run").err


@pytest.mark.parametrize("option", [("--baseline", "missing.json"), ("--filter", "no such case"), ("--tag", "none")])
def test_nothing_is_said_about_good_ones_where_an_option_is_wrong(
    evals: Path, command: Command, option: tuple[str, str]
) -> None:
    ended = command("run", *option)
    assert ended.status == 2
    assert len(shown(ended.err)) == 1
    assert "without problems" not in ended.err


def test_good_ones_alone_run(evals: Path, command: Command, tmp_path: Path) -> None:
    assert command("run", "--quiet").status == 0
    results = json.loads((tmp_path / "agenteval-report" / "results.json").read_text(encoding="utf-8"))
    assert results["summary"]["passed"] == 2


def test_in_a_process_of_its_own(evals: Path, tmp_path: Path) -> None:
    write_broken(evals)
    ended = agenteval("run", cwd=tmp_path)

    assert ended.status == 2
    found = shown(ended.err)
    assert len(found) + sum(mistake.more for mistake in found) == ELEVEN
    assert ended.err.endswith("without problems: .agentci/evals/good.toml, .agentci/evals/zen.toml\n")


def test_names_of_suites_cannot_disturb_the_terminal(evals: Path, command: Command) -> None:
    (evals / "ev\x1b[31mil.toml").write_text(GOOD, encoding="utf-8")
    (evals / "broken.toml").write_text("[eval", encoding="utf-8")
    for name in ("run", "validate"):
        assert "\x1b" not in command(name).text
