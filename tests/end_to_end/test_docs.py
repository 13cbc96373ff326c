"""Everything that the documentation shows is checked by what reads it, and what can be run is run."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.end_to_end.conftest import Command
from tests.end_to_end.documentation import Block, as_workflow, blocks, inputs_of, kind_of, known_inputs
from tests.git_server import GIT_NAMES
from tests.support import AGENTEVAL, PATIENCE_S, ROOT, copied_agenteval, environment

from agenteval.cli import main as cli
from agenteval.cli.explanations import schema
from agenteval.cli.init import starter_for, write_starter
from agenteval.github.connection import WITHOUT
from agenteval.run.resolve.configurations import read_config
from agenteval.run.rules.accepted_file import read_accepted
from agenteval.suite.formats.registry import load_suites

YAML = [(block, yaml.safe_load(block.text)) for block in blocks("yaml")]
# What the documentation says to write into the files of other programs.
FOREIGN = {"foreign: exporters", "foreign: environment, steps"}
MAKE_TARGETS = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
OTHER_PROGRAMS = {"echo", "export", "gh", "git", "python", "docker", "sed", "ruff"}
CONSOLE = blocks("console")
RUNNABLE = [block for block in CONSOLE if block.statuses is not None]
# What `agenteval init` prints too.
FIRST_COMMANDS = next(block for block in RUNNABLE if "\nagenteval init\n" in block.text)


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(block, document, id=str(block)) for block, document in YAML if kind_of(document) == kind]


def test_it_is_known_what_each_block_is() -> None:
    kinds = {str(block): kind_of(document) for block, document in YAML}
    assert {
        kind: place
        for place, kind in kinds.items()
        if kind not in {"workflow", "config", "accepted", "suite", *FOREIGN}
    } == {}
    assert {"workflow", "config", "suite"} <= set(kinds.values())
    known = {"console", "yaml", "toml", "json", "python", "jinja", "markdown", "diff", "text"}
    assert [str(block) for block in blocks(*known)] == [str(block) for block in blocks(*known, "sh", "bash", "yml")]


def test_texts_are_output_and_hide_no_command_or_data() -> None:
    programs = {"agenteval", "pipx", "make", "pip", "$", *OTHER_PROGRAMS}
    words = {(str(block), line.split()[0]) for block in blocks("text") for line in block.text.splitlines() if line}
    assert {place: word for place, word in words if word in programs} == {}
    assert [str(block) for block in blocks("text") if _is_data(block.text)] == []


def _is_data(text: str) -> bool:
    """Whether a text is YAML or JSON, which are checked in blocks of their own languages."""
    try:
        return not isinstance(yaml.safe_load(text), str)
    except yaml.YAMLError:
        return False


def _provide(document: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files and packages that a configuration names."""
    for metric in document.get("metrics", ()):
        path, _, name = metric.get("python", "").rpartition(":")
        if path.endswith(".py"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"def {name}(answer):\n    return 1.0\n", encoding="utf-8")
    reporters = document.get("reports", ())
    if reporters:
        site = folder / "site"
        info = site / "acme_evals-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "acme_reporter.py").write_text("def render(report, results):\n    return []\n", encoding="utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.0\n", encoding="utf-8")
        entries = "\n".join(f"{name} = acme_reporter:render" for name in reporters)
        (info / "entry_points.txt").write_text(f"[agenteval.reporters]\n{entries}\n", encoding="utf-8")
        monkeypatch.syspath_prepend(site)
        monkeypatch.setenv("AGENTEVAL_PLUGINS", ",".join(reporters))


@pytest.mark.parametrize(("block", "document"), of_kind("accepted"))
def test_a_file_of_accepted_changes_is_read(block: Block, document: Any, tmp_path: Path) -> None:
    (tmp_path / ".agenteval").mkdir()
    (tmp_path / ".agenteval" / "accepted.yaml").write_text(block.text, encoding="utf-8")
    assert len(read_accepted(tmp_path)) == len(document["accepted"])
    Draft202012Validator(schema("accepted")).validate(json.loads(json.dumps(document, default=str)))


@pytest.mark.parametrize(("block", "document"), of_kind("config"))
def test_configurations_are_read(
    block: Block, document: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _provide(document, tmp_path, monkeypatch)
    file = tmp_path / "agenteval.yaml"
    file.write_text(block.text, encoding="utf-8")

    read_config(file)

    Draft202012Validator(schema("config")).validate(json.loads(json.dumps(document, default=str)))


@pytest.mark.parametrize(("block", "document"), of_kind("suite"))
def test_suites_load(block: Block, document: Any, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(block.text, encoding="utf-8")
    problems: list[Any] = []

    (suite,) = load_suites([file], problems)

    assert problems == []
    assert not suite.warnings
    Draft202012Validator(schema("holodeck")).validate(document)


# Other blocks are parts of pyproject.toml.
SUITES_IN_TOML = [
    block for block in blocks("toml") if not re.search(r"^\[(project|tool)\.", block.text, re.MULTILINE)
]


@pytest.mark.parametrize("block", SUITES_IN_TOML, ids=str)
def test_toml_suites_load(block: Block, tmp_path: Path) -> None:
    file = tmp_path / ".agentci" / "evals" / "shown.toml"
    file.parent.mkdir(parents=True)
    file.write_text(block.text, encoding="utf-8")
    problems: list[Any] = []

    (suite,) = load_suites([file], problems)

    assert (problems, suite.warnings) == ([], ())


def test_workflows_are_accepted_by_github_and_give_inputs_that_exist(tmp_path: Path) -> None:
    files = []
    for index, (block, document) in enumerate(YAML):
        if kind_of(document) == "workflow":
            workflow = as_workflow(document)
            assert inputs_of(workflow) <= known_inputs(), str(block)
            files.append(tmp_path / f"{index}-{block.page.stem}-{block.line}.yml")
            files[-1].write_text(yaml.safe_dump(workflow, sort_keys=False), encoding="utf-8")
    assert len(files) > 3
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    checked = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr

    zizmor = [
        str(Path(sys.executable).with_name("zizmor")),
        "--offline",
        "--config",
        str(ROOT / ".github/zizmor.yml"),
    ]
    audited = subprocess.run([*zizmor, *map(str, files)], capture_output=True, text=True, check=False)
    assert audited.returncode == 0, audited.stdout + audited.stderr


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_json_and_follows_its_schema(block: Block) -> None:
    try:
        documents = [json.loads(block.text)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in block.text.splitlines()]
    for document in documents:
        for name, marks in (
            ("request", {"input", "session"}),
            ("recording", {"case", "response"}),
            ("reply", {"usage"}),
        ):
            if marks <= set(document):
                Draft202012Validator(schema(name)).validate(document)
                break


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    ast.parse(block.text)


@pytest.mark.parametrize("block", blocks("jinja"), ids=str)
def test_templates_are_understood(block: Block) -> None:
    jinja2.Environment(autoescape=True).parse(block.text)


def commands_of(block: Block) -> list[list[str]]:
    """The words of each command of a block, without variables before it and notices behind it."""
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in map(_without_variables, split) if words]


def _without_variables(words: list[str]) -> list[str]:
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return words


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_commands_exist_with_these_options(block: Block) -> None:
    functions = set(re.findall(r"(?m)^(\w+)\(\) \{", block.text))
    commands = commands_of(block)
    assert commands
    for words in commands:
        program = Path(words[0]).name
        if program == "agenteval":
            # Exits with a message if there is something that it does not know.
            assert cli._arguments(words[1:]).command
        elif program == "pipx":
            assert words[1:3] == ["run", "agenteval-action"]
            assert cli._arguments(words[3:]).command
        elif program == "make":
            assert {word for word in words[1:] if not re.match("[A-Z]+=", word)} <= MAKE_TARGETS
        elif program == "pip":
            holodeck = ["holodeck-ai[openai-agents]", "exceptiongroup"]
            assert words[1:] in (["install", "agenteval-action"], ["install", *holodeck])
        else:
            assert program in OTHER_PROGRAMS | functions or words[0].endswith("()"), words


def test_the_first_commands_are_those_of_init(tmp_path: Path, command: Command) -> None:
    printed = command("init").out.partition("next:\n")[2].splitlines()
    # The line after the commands says how to require the check.
    *others, last = [line.partition("   #")[0].strip() for line in printed if line.startswith("  ")]
    assert FIRST_COMMANDS.text.splitlines() == [
        *("pip install agenteval-action", "agenteval init", *others),
        *last.split(" && "),
    ]
    # `test_five_commands_lead_to_a_regression` runs what this starter prints, and expects these statuses.
    assert FIRST_COMMANDS.statuses == (0, 0, 0, 0, 1)
    assert command("init", "--format", "holodeck", "--agent", "command", "named").status == 0
    for name in ("agent.yaml", "agenteval.yaml", "agent.py"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "named" / name).read_bytes()


@pytest.mark.parametrize("block", [block for block in RUNNABLE if block != FIRST_COMMANDS], ids=str)
def test_what_can_be_run_does_what_it_says(block: Block, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = [line for line in block.text.splitlines() if line.startswith(("git ", "sed ")) or "agenteval" in line]
    lines = [line for line in lines if not line.startswith("pip ")]
    if "agenteval init" not in lines:
        write_starter(starter_for(tmp_path, "holodeck", "python", "main"))
    folders = (Path(copied_agenteval()).parent, AGENTEVAL.parent, "/usr/local/bin", "/usr/bin", "/bin")
    env = environment(PATH=":".join(map(str, folders)), **GIT_NAMES)

    ended = []
    for line in lines:
        command = line.replace(".venv/bin/agenteval", "agenteval")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        ended.append((line, done.returncode, done.stdout + done.stderr))

    assert tuple(status for _, status, _ in ended) == block.statuses, ended


def test_some_of_it_can_be_run() -> None:
    assert {block.page.name for block in RUNNABLE} >= {"index.md", "gate.md", "configuration.md"}


def test_permissions_are_explained_as_the_program_does() -> None:
    page = (ROOT / "docs/github.md").read_text("utf-8")
    table = page.partition("| permission | without it |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"(?m)^\| `([\w: -]+)`[^|]* \| (.+) \|$", table)) == WITHOUT


def _code_of(file: Path) -> CodeType:
    """The code of a file, which is compiled already if it was imported once."""
    code = SourceFileLoader(file.stem, str(file)).get_code(file.stem)
    assert code is not None
    return code


def _texts_of(constant: object) -> Iterator[str]:
    """The texts in code, or in a constant of it."""
    if isinstance(constant, str):
        yield constant
    elif isinstance(constant, CodeType | tuple | frozenset):
        for inner in constant.co_consts if isinstance(constant, CodeType) else constant:
            yield from _texts_of(inner)


def test_messages_in_troubleshooting_are_those_of_the_program() -> None:
    texts = [text for file in (ROOT / "src").rglob("*.py") for text in _texts_of(_code_of(file))]
    headings = re.findall(r"(?m)^### (.*`.*)$", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))
    shown = [
        part.strip() for heading in headings for span in re.findall(r"`(.+?)`", heading) for part in span.split("…")
    ]

    assert len(shown) > 10
    assert [part for part in shown if not any(part in text for text in texts)] == []
