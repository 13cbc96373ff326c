"""Places that hold no report or no input: a message and exit status 2, and no file of people is replaced."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import ROOT, agenteval

from agenteval.core.version import DOCUMENTATION
from agenteval.results.store import read_results

AGENT = "agent: {command: [cat]}"
METRICS = "evaluations: {metrics: [{type: standard, metric: equality}]}"
CASES = "test_cases: [{name: a, input: hi, ground_truth: hi}]"
GOOD = f"{AGENT}\n{METRICS}\n{CASES}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a new user tries it."""
    # The message would name the home of a repository above.
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_a_directory_for_reports_that_is_none(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "dangling").symlink_to("gone")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    for out, said in {
        "dangling": "dangling is a link, not a directory",
        "loop/deeper": "loop is a link, not a directory",
        "pipe": "pipe is a named pipe, not a directory",
        "/dev/null/deeper": "/dev/null is a device, not a directory",
    }.items():
        ended = command("run", "--out", out)
        assert (ended.status, ended.out) == (2, ""), out
        assert said in ended.err
    for words in (["run", "--out"], ["report", "x", "--out"], ["report", "x", "-o"], ["merge", "x", "-o"]):
        ended = command(*words, "")
        assert ended.status == 2
        assert f"{words[-1]}: its value is empty" in ended.err
    assert sorted(path.name for path in folder.iterdir()) == [".git", "agent.yaml", "dangling", "loop", "pipe"]


def test_paths_that_are_not_utf_8(folder: Path, command: Command) -> None:
    """Linux allows any bytes; results, which are UTF-8, contain them escaped."""
    name = os.fsdecode(b"d\xff")
    (folder / name).mkdir()
    (folder / name / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for words in (
        ["validate", name],
        ["run", name, "--out", name],
        ["run", name, "--out", name, "--resume"],
        ["run", name, "--baseline", name, "--out", "again"],
        ["run", name, "--agent", f"replay:{name}", "--out", "replayed"],
        ["compare", name, name],
        ["report", name],
        ["merge", name, "-o", "merged"],
        ["probe", name],
    ):
        ended = command(*words)
        assert ended.status == 0, (words, ended.text)
        assert "internal error" not in ended.text
    for out in (name, "again", "merged"):
        (suite,) = read_results(folder / out).suites
        assert suite.path == r"d\udcff/agent.yaml"
        assert [case.id for case in suite.cases] == [f"{suite.path}::a"]
    ended = command("list", "--json")
    assert (ended.status, ended.out) == (2, "")
    assert "its path is not UTF-8, so no workflow can name it" in ended.err


def test_inputs_that_the_run_would_replace(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "out" / "evaluation").mkdir(parents=True)
    traces = {"trace_id": "a", "iteration": 0, "persona": "x", "output": "hi", "success": True}
    names = ("journal.jsonl", "confirmation-1.jsonl", "evaluation/per_trace.jsonl", "comment.md", "summary.md")
    for name in names:
        (folder / "out" / name).write_text(f"{json.dumps(traces)}\n", encoding="utf-8")
    (folder / "link").symlink_to("out/summary.md")
    (folder / "comment.yaml").write_text("templates: {comment: out/comment.md}", encoding="utf-8")
    (folder / "summary.yaml").write_text("templates: {summary: link}", encoding="utf-8")
    before = {name: (folder / "out" / name).read_bytes() for name in names}
    for words, what in (
        (["--agent", "replay:out/journal.jsonl"], "recording"),
        (["--agent", "replay:out/confirmation-1.jsonl"], "recording"),
        (["--agent", "replay:out/evaluation/per_trace.jsonl"], "recording"),
        (["--config", "comment.yaml"], "template"),
        (["--config", "summary.yaml"], "template"),
    ):
        ended = command("run", "agent.yaml", "--out", "out", *words)
        assert ended.status == 2, ended.text
        assert f"a report would take the place of this {what}" in ended.err
        assert {name: (folder / "out" / name).read_bytes() for name in names} == before
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    assert command("run", "--out", "run").status == 0
    for words in (["report", "run", "--out", "out"], ["merge", "run", "-o", "out"]):
        (folder / "agenteval.yaml").write_text("templates: {summary: out/summary.md}", encoding="utf-8")
        ended = command(*words, "--config", "agenteval.yaml")
        assert ended.status == 2, ended.text
        assert "a report would take the place of this template" in ended.err
        assert {name: (folder / "out" / name).read_bytes() for name in names} == before


def test_no_file_of_a_suite_is_replaced(folder: Path, command: Command) -> None:
    (folder / "out").mkdir()
    suite = yaml.safe_load(GOOD)
    files: dict[str, tuple[str, dict[str, Any]]] = {
        "results.json": (
            json.dumps(suite["test_cases"]),
            {"test_cases": None, "test_cases_file": "out/results.json"},
        ),
        "badge.json": (
            "{}",
            {"test_cases": [{**suite["test_cases"][0], "files": [{"path": "out/badge.json", "type": "text"}]}]},
        ),
        "comment.md": ("limits: {}", {}),
    }
    for name, (text, keys) in files.items():
        (folder / "out" / name).write_text(text, encoding="utf-8")
        changed = {key: value for key, value in {**suite, **keys}.items() if value is not None}
        (folder / "agent.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
        words = () if keys else ("--config", "out/comment.md")
        ended = command("run", "agent.yaml", "--out", "out", *words)
        assert ended.status == 2, ended.text
        assert "a report would take the place of this" in ended.err
        assert f" --> out/{name}\n" in ended.err
        assert (folder / "out" / name).read_text(encoding="utf-8") == text
        (folder / "out" / name).unlink()


def test_no_results_or_configuration_is_replaced_by_a_report(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for name in ("other.yaml", "other.json", "agenteval.yaml"):
        (folder / name).write_text("limits: {}", encoding="utf-8")
    for out in ("run", "again"):
        assert command("run", "--out", out).status == 0
    (folder / "copy").mkdir()
    (folder / "summary.yaml").write_text("templates: {summary: copy/template}", encoding="utf-8")
    shutil.copy("run/results.json", "copy/trend.json")
    shutil.copy("again/results.json", "copy/other.json")
    shutil.copy("run/results.json", "copy/results.json")
    (folder / "copy" / "template").write_text('{% include "comment.md" %}', encoding="utf-8")
    (folder / "copy" / "comment.md").write_text("Hello", encoding="utf-8")
    (folder / "link.md").symlink_to("run/results.json")
    (folder / "run-link").symlink_to("run")
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    (folder / "traces").rename("other")
    (folder / "traces").mkdir()
    shutil.copytree("other", "traces/evaluation")
    shutil.copytree("other", "experiment")
    # Their evaluation is beside them, and is replaced.
    for _ in range(2):
        ended = command("run", "configs/evaluation.yaml", "--traces", "experiment", "--out", "experiment")
        assert ended.status == 1, ended.text
    with Path("configs/evaluation.yaml").open("a", encoding="utf-8") as file:
        file.write("  template_path: ../page/report.html\n")
    (folder / "page").mkdir()
    (folder / "page" / "report.html").write_text("<p>[[TITLE]]</p>", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words in (
        ["report", "run", "--format", "markdown", "-o", "run/results.json"],
        ["report", "run", "--format", "json", "-o", "run/results.json"],
        ["report", "run", "-o", "link.md"],
        ["report", "run", "--config", "other.yaml", "--format", "html", "-o", "other.yaml"],
        ["report", "run", "--format", "markdown", "-o", "agenteval.yaml"],
        ["report", "run", "--format", "json", "-o", "agent.yaml"],
        ["report", "run", "--history", "copy", "--format", "html", "-o", "copy/results.json"],
        ["report", "run", "--config", "summary.yaml", "--out", "copy"],
        ["run", "agent.yaml", "--config", "summary.yaml", "--out", "copy"],
        ["run", "agent.yaml", "--agent", "replay:run", "--out", "run"],
        ["run", "agent.yaml", "--agent", "replay:run-link", "--out", "run"],
        ["run", "configs/evaluation.yaml", "--traces", "traces", "--out", "traces"],
        ["run", "configs/evaluation.yaml", "--traces", "other", "--out", "page"],
        ["report", "copy/trend.json"],
        ["merge", "copy/trend.json", "copy/other.json", "-o", "copy/all.json"],
        ["merge", "run", "again", "-o", "run"],
        ["merge", "run", "again", "--config", "other.json", "-o", "other.json"],
    ):
        ended = command(*words)
        assert ended.status == 2, (words, ended.text)
        assert "a report would take the place of this" in ended.err, words
        assert {path: path.read_bytes() for path in before} == before, words


def test_reports_of_two_runs_in_one_directory(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for out in ("one", "two"):
        assert command("run", "--out", out).status == 0
    ended = command("report", "one", "--out", "two")
    assert ended.status == 2
    assert "this directory contains the results of another run" in ended.err
    (folder / "two" / "one.json").write_bytes((folder / "one" / "results.json").read_bytes())
    assert command("report", "two/one.json").status == 0
    assert command("report", "two").status == 0
    assert command("report", "one", "--out", "three").status == 0
    assert command("report", "one", "--out", "three").status == 0
    assert command("merge", "one", "-o", "two").status == 0
    assert not (folder / "two" / "journal.jsonl").exists()
    before = {path: path.read_bytes() for path in (folder / "one").iterdir()}
    ended = command("merge", "two", "-o", "one/merged.json")
    assert ended.status == 2
    assert "this directory contains the results of another run" in ended.err
    assert {path: path.read_bytes() for path in (folder / "one").iterdir()} == before
    for _ in range(2):
        assert command("merge", "two", "-o", "merged/all.json").status == 0


@pytest.mark.parametrize("place", ["folder", "link.html", "/dev/null", "agent.yaml/report.html"])
def test_a_report_is_written_to_a_file(folder: Path, command: Command, place: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    assert command("run").status == 0
    (folder / "folder").mkdir()
    (folder / "link.html").symlink_to("agenteval-report/report.html")
    ended = command("report", "agenteval-report", "--format", "html", "-o", place)
    assert ended.status == 2, ended.text
    assert re.search(r"not a regular file\n --> .*\n  = help: name another file with -o|not a directory", ended.err)


@pytest.mark.parametrize("agent", ["command: [sh, comment.md]", "command: [sh, ./traces/../comment.md]"])
def test_no_program_of_an_agent_is_replaced_by_a_report(folder: Path, command: Command, agent: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("command: [cat]", agent), encoding="utf-8")
    (folder / "traces").mkdir()
    (folder / "comment.md").write_text("echo hi", encoding="utf-8")
    ended = command("run", "agent.yaml", "--out", ".")
    assert ended.status == 2, ended.text
    assert "a report would take the place of this program" in ended.err
    assert (folder / "comment.md").read_text(encoding="utf-8") == "echo hi"
    assert command("run", "agent.yaml", "--out", "out").status == 0


@pytest.mark.parametrize("word", [r'"a\0b"', "x" * 5000, "..", '""'])
def test_a_word_of_a_command_need_not_be_a_path(folder: Path, command: Command, word: str) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", f"[echo, {word}]"), encoding="utf-8")
    ended = command("run", "agent.yaml")
    assert "internal error" not in ended.text
    assert (ended.status, "could not be run" in ended.out) in [(1, False), (3, True)]


def test_judgements_are_appended_to_no_file_that_is_read(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    suite = (folder / "configs" / "evaluation.yaml").read_text(encoding="utf-8")
    judge = "  - {name: j, type: llm_judge, model: m, prompt_template: 'Rate {output}', parser: first_number_1_10}\n"
    suite = suite.replace("evaluators:\n", f"evaluators:\n{judge}") + "limits: {cache: %s}\n"
    (folder / "agenteval.yaml").write_text("gate: {max_error_rate: 0.5}\n", encoding="utf-8")
    caches = ("../traces/per_trace.jsonl", "evaluation.yaml", "../agenteval.yaml", "../out/journal.jsonl")
    for cache in caches:
        (folder / "configs" / "evaluation.yaml").write_text(suite % cache, encoding="utf-8")
        ended = command("run", "configs/evaluation.yaml", "--traces", "traces", "--out", "out")
        assert ended.status == 2, (cache, ended.text)
        assert "judgements would be appended to this" in ended.err, ended.text


def test_loops_of_links(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "loop").symlink_to("loop")
    for words in (
        ["merge", "loop", "-o", "merged"],
        ["compare", "loop", "loop"],
        ["prove", "loop"],
        ["report", "loop"],
        ["open", "loop"],
        ["accept", "--from", "loop", "--reason", "x"],
        ["run", "loop"],
        ["run", "loop/agent.yaml"],
        ["run", "--config", "loop"],
        ["run", "--baseline", "loop"],
        ["run", "--failed-in", "loop"],
        ["run", "--agent", "replay:loop"],
        ["validate", "loop"],
        ["list", "loop"],
    ):
        ended = command(*words)
        assert ended.status == 2, words
        assert "internal error" not in ended.err, words
        assert "loop" in ended.err, words


def test_the_installed_command_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(f"{GOOD}nmae: x\n", encoding="utf-8")
    ended = agenteval("run", cwd=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        "error: unknown key 'nmae'; did you mean 'name'?",
        " --> agent.yaml:4",
        "  |",
        "4 | nmae: x",
        "  | ^^^^ nmae",
        f"  = see: {DOCUMENTATION}/troubleshooting.md#unknown-key",
        "",
        "nothing was run (exit status 2)",
    ]
