"""A change chooses nothing about its own verdict: each way to choose it, through the program in a git repository."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.judged_repository import EQUALITY, GATE, GRADED, Repository, made_repository
from tests.git_server import commit, git
from tests.support import PYTHON, case

from agenteval.gate.integrity import digests_of
from agenteval.gate.pairing import own_cases
from agenteval.results.model import Difference

AGENT = {"python": "agent:reply", "interpreter": PYTHON}
SOON = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
STATISTICS: dict[str, Any] = {"must_pass": []}
SLOW = """
import json, time
def reply(request):
    time.sleep({seconds})
    return request["input"]
"""


@pytest.fixture
def repository(command: Command, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return made_repository(command, tmp_path, monkeypatch)


Change = Callable[[Repository], None]


def configure(it: Repository, gate: dict[str, Any] | None = None, **keys: Any) -> None:
    """Write ``agenteval.yaml`` with the agent of the repository."""
    content = {"iterations": 1, "agents": {"default": AGENT}, "gate": {**GATE, **(gate or {})}, **keys}
    (it.folder / "agenteval.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def on_main(it: Repository, prepare: Change, *arguments: str) -> None:
    """Let another state be the base: with the agent in ``agenteval.yaml``, and a baseline of the same arguments."""
    git(it.folder, "checkout", "--quiet", "-B", "main")
    suite = it.suite
    suite.pop("agent")
    it.write_suite(suite)
    configure(it)
    prepare(it)
    commit(it.folder)
    assert it.run("--out", "../base", *arguments).status in {0, 1}
    git(it.folder, "checkout", "--quiet", "-b", "another")


def nothing(_: Repository) -> None:
    """Change nothing."""


def rename(old: str, new: str) -> Change:
    return lambda it: it.edit_case(old, name=new)


def broken(*names: str) -> Change:
    return lambda it: it.break_agent(*(f"question {name}" for name in names))


def both(*changes: Change) -> Change:
    def change(it: Repository) -> None:
        for one in changes:
            one(it)

    return change


def own_control(it: Repository) -> None:
    agents = {"default": {**AGENT, "control": "again"}, "again": AGENT}
    configure(it, STATISTICS, agents=agents)


def linked_suite(it: Repository) -> None:
    """Put a link to a suite without the broken case in the place of the suite."""
    suite = it.suite
    suite["test_cases"].pop(0)
    it.write_suite(suite, "easy.yaml")
    (it.folder / "agent.yaml").unlink()
    (it.folder / "agent.yaml").symlink_to("easy.yaml")


def own_interpreter(it: Repository) -> None:
    """Name a Python in which every grader gives full marks."""
    shim = it.folder / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text("import sys\nsys.path.insert(0, __file__.rpartition('/')[0] + '/easy')\n")
    (shim / "easy").mkdir()
    (shim / "easy" / "grader.py").write_text("def check(context):\n    return True\n")
    program = it.folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{shim}" exec "{PYTHON}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    configure(it, agents={"default": {**AGENT, "interpreter": "./python"}})


def rewritten_grader(it: Repository) -> None:
    """Let the agent write another grader into the workspace while it runs."""
    code = (it.folder / "agent.py").read_text(encoding="utf-8")
    grader = "def check(context):\n    return True\n"
    write = f"import pathlib\npathlib.Path(__file__).with_name('grader.py').write_text({grader!r})\n"
    (it.folder / "agent.py").write_text(f"{write}{code}", encoding="utf-8")


def graded_only(it: Repository) -> None:
    it.write_suite({**it.suite, "evaluations": {"metrics": [GRADED]}})


def replayed(it: Repository) -> None:
    shutil.copytree(it.folder.parent / "base", it.folder / "recorded")
    configure(it, agents={"default": {"replay": "recorded"}})


def slow(it: Repository) -> None:
    (it.folder / "agent.py").write_text(SLOW.format(seconds=1.5), encoding="utf-8")


def two_suites(it: Repository) -> None:
    """Make a suite with a criterion, and one without."""
    for name, criteria in (("strict", {"max_response_ms": 1000}), ("loose", None)):
        folder = it.folder / name
        folder.mkdir()
        cases = [case(f"{name}{number}", f"{name} {number}", f"{name} {number}") for number in range(3)]
        content = {"name": name, "evaluations": {"metrics": [EQUALITY]}, "test_cases": cases}
        it.write_suite(content, f"{name}/agent.yaml")
        shutil.copy(it.folder / "agent.py", folder)
        keys = {"iterations": 1, "agents": {"default": AGENT}, "criteria": criteria}
        text = yaml.safe_dump({key: value for key, value in keys.items() if value is not None})
        (folder / "agenteval.yaml").write_text(text, encoding="utf-8")


def moved_and_slow(it: Repository) -> None:
    """Move two slow cases to the suite without a criterion."""
    suites = {name: yaml.safe_load((it.folder / name / "agent.yaml").read_text()) for name in ("strict", "loose")}
    moving = suites["strict"]["test_cases"]
    suites["loose"]["test_cases"] += moving[:2]
    suites["strict"]["test_cases"] = moving[2:]
    for name, content in suites.items():
        it.write_suite(content, f"{name}/agent.yaml")
        text = SLOW.format(seconds=1.5).replace("    time.", "    request['input'] == 'strict 0' and time.")
        (it.folder / name / "agent.py").write_text(text, encoding="utf-8")


HELD = {**STATISTICS, "quarantine": [{"case": "experimental-*", "until": SOON}]}

# What is in the base commit, what the change does, arguments, the verdict, and a difference that is listed.
CHOICES: dict[str, tuple[Change, Change, tuple[str, ...], str, tuple[str, str | None] | None]] = {
    "its own control": (
        lambda it: configure(it, STATISTICS),
        both(own_control, broken("c0", "c1", "c2")),
        (),
        "failed",
        ("agent", "control"),
    ),
    "a link to another suite": (nothing, both(linked_suite, broken("c0")), (), "unproven", ("removed", None)),
    "the interpreter of graders": (
        graded_only,
        both(own_interpreter, broken("c0")),
        (),
        "failed",
        ("agent", "options"),
    ),
    "the grader beside the agent": (graded_only, both(broken("c0"), rewritten_grader), (), "failed", None),
    "a quarantined name": (
        lambda it: configure(it, HELD),
        both(rename("c0", "experimental-0"), broken("c0")),
        (),
        "failed",
        ("renamed", None),
    ),
    "a name that the filter leaves out": (
        nothing,
        both(rename("c0", "other"), broken("c0")),
        ("--filter", "::c"),
        "failed",
        ("renamed", None),
    ),
    "recorded answers": (nothing, both(replayed, broken("c0")), (), "unproven", ("agent", "kind")),
    "the time limit of a case": (
        lambda it: configure(it, case_timeout=1),
        both(lambda it: configure(it, case_timeout=100), slow),
        (),
        "error",
        ("setting", "case_timeout"),
    ),
    "the time limit of a turn": (
        lambda it: configure(it, agents={"default": {**AGENT, "timeout": 1}}),
        both(lambda it: configure(it, agents={"default": {**AGENT, "timeout": 100}}), slow),
        (),
        "error",
        ("agent", "timeout"),
    ),
    "a suite without criteria": (two_suites, moved_and_slow, ("strict", "loose"), "unproven", ("removed", None)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CHOICES)
def test_a_change_does_not_choose(repository: Repository, name: str) -> None:
    prepare, change, arguments, verdict, listed = CHOICES[name]
    on_main(repository, prepare, *arguments)
    change(repository)
    ended = repository.compared(*arguments)
    gate = repository.results.gate
    assert gate is not None
    assert (gate.verdict, ended.status != 0) == (verdict, True), ended.text
    assert listed is None or listed in {(item.kind, item.setting) for item in repository.results.run.integrity}


def test_a_case_that_must_pass_keeps_its_base_name(repository: Repository) -> None:
    """A known failure, which fails the gate only because the base commit names it."""

    def prepare(it: Repository) -> None:
        it.break_agent("question c0")
        configure(it, {"must_pass": ["c0"]})

    on_main(repository, prepare)
    repository.edit_case("c0", name="other")
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert "1 of 6 cases fails" in ended.text


@pytest.mark.parametrize("eased", [False, True])
def test_a_linked_directory_keeps_the_rules_of_the_base(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, eased: bool
) -> None:
    folder, suite = repository.folder, "app/agent.yaml"

    def prepare(it: Repository) -> None:
        (it.folder / "app").mkdir()
        for name in ("agent.yaml", "agent.py", "grader.py", "agenteval.yaml"):
            (it.folder / name).rename(it.folder / "app" / name)
        monkeypatch.chdir(it.folder / "app")

    git(folder, "checkout", "--quiet", "-B", "main")
    prepare(repository)
    commit(folder)
    assert repository.run("--out", "../../base").status == 0
    git(folder, "checkout", "--quiet", "-b", "another")
    monkeypatch.chdir(folder)
    (folder / "app").rename(folder / "app2")
    (folder / "app").symlink_to("app2")
    if eased:
        content = yaml.safe_load((folder / suite).read_text())
        content["evaluations"]["metrics"] = [{**EQUALITY, "threshold": 0.0}]
        repository.write_suite(content, suite)
    monkeypatch.chdir(folder / "app")
    commit(folder)
    ended = repository.command("run", "--quiet", "--baseline", "../../base", "--out", "../agenteval-report")
    assert ended.status == (1 if eased else 0), ended.text
    kinds = {item.kind for item in repository.results.run.integrity}
    assert kinds == ({"removed", "new", "setting"} if eased else {"agent", "renamed", "setting"}), ended.text


def accept(it: Repository, *entries: dict[str, Any]) -> None:
    path = it.folder / ".agenteval" / "accepted.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"accepted": [{"reason": "right", "until": SOON, **item} for item in entries]}))


def test_an_accepted_mean_accepts_no_case(repository: Repository) -> None:
    on_main(repository, lambda it: configure(it, STATISTICS))
    broken("c0", "c1")(repository)
    mean = {"metric": "equality", "change": "worse", "before": "1.0", "after": "0.6"}
    accept(repository, mean, {**mean, "metric": "graded"})
    ended = repository.compared()
    assert ended.status == 1, ended.text
    comparison = repository.results.comparison
    assert comparison is not None
    assert "the mean of equality (1.00 → 0.67) was accepted by a@b.c: right" in comparison.notes
    assert not any(metric.fell for metric in comparison.metrics)
    assert {case.change for case in comparison.cases} == {"broke", "same"}


@pytest.mark.parametrize("is_edited", [False, True])
def test_an_edit_that_was_accepted_must_pass(repository: Repository, is_edited: bool) -> None:
    broken("c0")(repository)
    if is_edited:
        repository.edit_case("c0", ground_truth="another answer")
    assert repository.compared().status == 1
    digests = digests_of(own_cases(repository.results))
    edited = digests["agent.yaml::c0 (edited)" if is_edited else "agent.yaml::c0"]
    accept(repository, {"case": "agent.yaml::c0", "change": "edited", "fingerprint": edited})
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert "1 of 6 cases" in ended.text


def test_a_template_of_the_change_shows_nothing(repository: Repository) -> None:
    def template(text: str) -> Change:
        def change(it: Repository) -> None:
            for name in ("base.j2", "own.j2"):
                (it.folder / name).write_text(text, encoding="utf-8")

        return change

    on_main(
        repository,
        both(template("of the base\n"), lambda it: configure(it, templates={"comment": "base.j2"})),
    )
    both(
        template("all passed\n"),
        lambda it: configure(it, templates={"comment": "base.j2", "summary": "own.j2"}),
        broken("c0"),
    )(repository)
    ended = repository.compared()
    assert ended.status == 1, ended.text
    report = repository.folder / "agenteval-report"
    assert "of the base" in (report / "comment.md").read_text(encoding="utf-8")
    assert "all passed" not in (report / "summary.md").read_text(encoding="utf-8")
    settings = [item.setting for item in repository.differences("setting")]
    assert settings == ["templates.summary", "template base.j2", "template own.j2"]


CALLS = "name: agenteval\non: pull_request\njobs: {a: {runs-on: x, steps: [{uses: ./.github/actions/evaluate}]}}\n"
STARTS = "runs: {using: composite, steps: [{uses: org/agenteval-action@v1}]}\n"


def test_workflows_and_actions_that_name_agenteval_are_listed(repository: Repository) -> None:
    files = {
        ".github/workflows/ci.yml": CALLS,
        ".github/workflows/other.yml": "on: push\njobs: {}\n",
        ".github/actions/evaluate/action.yml": STARTS,
    }

    def write(mark: str) -> Change:
        def change(it: Repository) -> None:
            for name, text in files.items():
                path = it.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + mark, encoding="utf-8")

        return change

    on_main(repository, write(""))
    write("# changed\n")(repository)
    ended = repository.compared()
    assert ended.status == 0, ended.text
    found: list[Difference] = repository.differences("workflow")
    assert [item.setting for item in found] == [".github/actions/evaluate/action.yml", ".github/workflows/ci.yml"]


def test_the_base_names_the_control(repository: Repository) -> None:
    """The control that the base commit names runs, in the version of the base commit."""
    agents = {"default": {**AGENT, "control": "again"}, "again": AGENT}
    on_main(repository, lambda it: configure(it, STATISTICS, agents=agents))
    broken("c0", "c1", "c2")(repository)
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert repository.results.gate is not None
    assert repository.results.gate.verdict == "failed"
    assert repository.results.run.integrity == []
