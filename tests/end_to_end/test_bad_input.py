"""Places that hold no report or no input: a message and exit status 2, and no file of people is replaced."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.support import ROOT

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
    out = f"{name}-report"
    for words in (
        ["validate", name],
        ["run", name, "--out", out],
        ["run", name, "--out", out, "--resume"],
        ["run", name, "--baseline", out, "--out", "again"],
        ["run", name, "--agent", f"replay:{out}", "--out", "replayed"],
        ["compare", out, out],
        ["report", out],
        ["merge", out, "-o", "merged"],
        ["probe", name],
    ):
        ended = command(*words)
        assert ended.status == 0, (words, ended.text)
        assert "internal error" not in ended.text
    for made in (out, "again", "merged"):
        (suite,) = read_results(folder / made).suites
        assert suite.path == r"d\udcff/agent.yaml"
        assert [case.id for case in suite.cases] == [f"{suite.path}::a"]
    ended = command("list", "--json")
    assert (ended.status, ended.out) == (2, "")
    assert "its path is not UTF-8, so no workflow can name it" in ended.err


def test_reports_take_the_place_of_nothing_else(folder: Path, command: Command) -> None:
    suite = GOOD.replace("[cat]", "[echo, hi]")
    (folder / "agent.yaml").write_text(suite, encoding="utf-8")
    for out in ("run", "again"):
        assert command("run", "--out", out).status == 0
    (folder / "link").symlink_to("run")
    (folder / "theirs").mkdir()
    (folder / "theirs" / "summary.md").write_text("Mine", encoding="utf-8")
    (folder / "mine").mkdir()
    shutil.copy("run/results.json", "mine/results.json")
    shutil.copy("again/results.json", "mine/other.json")
    for name, text in (
        ("comment.md", "{{ headline }}"),
        ("traces.jsonl", '{"case": "a", "response": "hi"}\n'),
        ("agent.yaml", suite),
        ("agenteval.yaml", "limits: {}"),
    ):
        (folder / "mine" / name).write_text(text, encoding="utf-8")
    (folder / "template.yaml").write_text("templates: {comment: mine/comment.md}", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ours, theirs = "the command reads this", "files that are not of agenteval"
    for said, words in (
        (theirs, ["run", "agent.yaml", "--out", "theirs"]),
        (theirs, ["merge", "run", "-o", "theirs"]),
        (theirs, ["report", "run", "--out", "theirs"]),
        (ours, ["run", "agent.yaml", "--out", "."]),
        (ours, ["run", "mine/agent.yaml", "--out", "mine"]),
        (ours, ["run", "agent.yaml", "--config", "mine/agenteval.yaml", "--out", "mine"]),
        (ours, ["run", "agent.yaml", "--config", "template.yaml", "--out", "mine"]),
        (ours, ["run", "agent.yaml", "--agent", "replay:mine/traces.jsonl", "--out", "mine"]),
        (ours, ["run", "agent.yaml", "--agent", "replay:run", "--out", "run"]),
        (ours, ["run", "agent.yaml", "--agent", "replay:link", "--out", "run"]),
        (ours, ["report", "run", "--config", "template.yaml", "--out", "mine"]),
        (ours, ["report", "mine/other.json"]),
        (ours, ["merge", "run", "again", "-o", "run"]),
        (ours, ["merge", "mine/other.json", "-o", "mine/all.json"]),
        ("would take the place of this file", ["report", "run", "--format", "json", "-o", "run/results.json"]),
        (
            "would take the place of this file",
            ["report", "run", "--format", "markdown", "-o", "agent.yaml"],
        ),
    ):
        ended = command(*words)
        assert ended.status == 2, (words, ended.text)
        assert said in ended.err or "another run" in ended.err, (words, ended.err)
        assert {path: path.read_bytes() for path in before} == before, words


def test_reports_of_two_runs_in_one_directory(folder: Path, command: Command) -> None:
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    for out in ("one", "two"):
        assert command("run", "--out", out).status == 0
    ended = command("report", "one", "--out", "two")
    assert ended.status == 2
    assert "this directory contains the results of another run" in ended.err
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


def test_judgements_are_appended_to_no_file_that_is_read(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    suite = (folder / "configs" / "evaluation.yaml").read_text(encoding="utf-8")
    judge = "  - {name: j, type: llm_judge, model: m, prompt_template: 'Rate {output}', parser: first_number_1_10}\n"
    suite = suite.replace("evaluators:\n", f"evaluators:\n{judge}") + "limits: {cache: %s}\n"
    (folder / "agenteval.yaml").write_text("gate: {max_error_rate: 0.5}\n", encoding="utf-8")
    caches = ("../traces/per_trace.jsonl", "evaluation.yaml", "../agenteval.yaml")
    for cache in caches:
        (folder / "configs" / "evaluation.yaml").write_text(suite % cache, encoding="utf-8")
        ended = command("run", "configs/evaluation.yaml", "--traces", "traces", "--out", "out")
        assert ended.status == 2, (cache, ended.text)
        assert "judgements would be appended to this file" in ended.err, ended.text


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


def test_thousands_of_mistakes_in_one_line(folder: Path, command: Command) -> None:
    """The time grows with the number of mistakes, not with its square, and a person reads the first ones."""
    cases = ", ".join(f"{{name: a{n}, input: hi, k{n}: 1}}" for n in range(4000))
    (folder / "agent.yaml").write_text(f"{AGENT}\n{METRICS}\ntest_cases: [{cases}]\n", encoding="utf-8")
    started = os.times().elapsed
    ended = command("validate")
    assert os.times().elapsed - started < 60
    assert ended.status == 2
    assert ended.err.count("unknown key") == 20
    assert "error: 3,980 more mistakes in this file" in ended.err and "4,000 mistakes;" in ended.err  # noqa: PT018


def test_forged_results(folder: Path, command: Command) -> None:
    """Whoever wrote a results file: every command refuses what no run writes."""
    (folder / "agent.yaml").write_text(GOOD.replace("[cat]", "[echo, hi]"), encoding="utf-8")
    assert command("run").status == 0
    written = (folder / "agenteval-report/results.json").read_text(encoding="utf-8")
    for pattern, forged in {
        r'"started_at": "[^"]*"': '"started_at": "noon"',
        r'"finished_at": "[^"]*"': '"finished_at": "0001-01-01T00:00:00+23:59"',
        r'"duration_s": [\d.]+': f'"duration_s": {10**400}',
        r'"latency_ms": ?[\d.]+': '"latency_ms": NaN',
        r'"input_tokens": \d+': f'"input_tokens": {10**30}',
    }.items():
        text, found = re.subn(pattern, forged, written, count=1)
        assert found, pattern
        (folder / "forged.json").write_text(text, encoding="utf-8")
        for words in (
            ["report", "forged.json"],
            ["compare", "forged.json", "agenteval-report"],
            ["compare", "agenteval-report", "forged.json"],
            ["merge", "forged.json", "-o", "merged"],
            ["publish", "forged.json", "--dry-run"],
            ["run", "--baseline", "forged.json", "--out", "new"],
        ):
            ended = command(*words)
            assert (ended.status, "results-cannot-be-used" in ended.err) == (2, True), (forged, words, ended.text)
