"""The base commit's agent runs beside the pull request's, in a directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.integration.gated_suite import AGENT, CASES, Project, RecordedQuestion, names
from tests.support import (
    AGENTEVAL,
    answer,
    case,
    environment,
    eventually,
    python_agent,
    request,
    write_suite,
)

from agenteval.core.confine import confined, run_confined
from agenteval.core.files import Owner
from agenteval.results.comparison import Comparison
from agenteval.run.base_commit import BaseCommit, LocalHost, base_commit
from agenteval.run.config import DEFAULT_CONCURRENCY, Settings
from agenteval.run.confirm.control import Control, opened_control
from agenteval.run.context import RunContext
from agenteval.run.git import ControlError
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.resolve_run import resolve_files
from agenteval.suite.model import AgentSpec

SUITE = Path("agent.yaml")


@pytest.fixture
def project(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository whose first commit answers right."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Worktrees are made in here, where one that is left over shows.
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    found = Project(folder, command, monkeypatch)
    found.write()
    (folder / ".gitignore").write_text("base-*\nbefore\nagenteval-report\n__pycache__\n", encoding="utf-8")
    commit(folder)
    return found


def comparison(project: Project) -> Comparison:
    found = project.results().comparison
    assert found is not None
    return found


def worktrees(project: Project) -> list[str]:
    """What git still knows of, and what is left of files."""
    listed = git(project.folder, "worktree", "list").splitlines()
    left = [path.name for path in (project.folder.parent / "temporary").glob("agenteval-control-*")]
    return [line for line in listed if str(project.folder) not in line] + left


def beside(asked: Iterable[RecordedQuestion]) -> list[RecordedQuestion]:
    """What the base commit's agent was asked."""
    return [item for item in asked if "agenteval-control-" in item.agent]


@contextmanager
def prepared(commit_id: str | None, *suites: Path, setup: str = "") -> Iterator[tuple[RunSpec, BaseCommit]]:
    """The control of suites in the current directory, as the first run finds it."""
    spec = resolve_files(Settings(suites=suites), RunContext(setup=setup))
    with base_commit(Path.cwd(), LocalHost(), commit_id) as found:
        yield spec, found


@contextmanager
def control_of(commit_id: str | None, *suites: Path, setup: str = "") -> Iterator[Control]:
    """The control, ready to run."""
    with prepared(commit_id, *suites, setup=setup) as (spec, found), opened_control(found, spec) as control:
        yield control


@contextmanager
def base_of(commit_id: str | None, *suites: Path, setup: str = "") -> Iterator[Mapping[str, AgentSpec]]:
    """The agents of the control."""
    with control_of(commit_id, *suites, setup=setup) as control:
        yield {case_id: case.agent for case_id, case in control.cases.items()}


def break_cases(project: Project, broken: str) -> str:
    project.write(broken=broken)
    return commit(project.folder)


def test_both_commits_answer_side_by_side(project: Project) -> None:
    baseline = project.past(1)
    began = git(project.folder, "rev-parse", "HEAD")
    break_cases(project, names(0, 12))
    ended = project.run("--baseline", baseline)
    assert ended.status == 1, ended.text
    found = comparison(project)
    assert (found.state, found.stage, found.base_sha) == ("proven", "beside", began)
    asked = project.asked()
    base = beside(asked)
    assert {item.agent for item in asked if item not in base} == {str(project.folder / "agent.py")}
    # Each answer is of a session of its own.
    assert len({item.session for item in asked}) == len(asked)
    assert found.cost is not None
    assert found.cost.calls == len(asked) - CASES
    assert not any(Path(item.agent).exists() for item in base)
    assert worktrees(project) == []


# Whatever goes wrong, nothing is left over, and the run is reported


def test_the_worktree_goes_after_an_error(project: Project) -> None:
    head = git(project.folder, "rev-parse", "HEAD")

    with pytest.raises(RuntimeError, match="in between"):
        fail_beside(project, head)
    assert worktrees(project) == []


def fail_beside(project: Project, head: str) -> None:
    with base_of(head, SUITE):
        assert len(worktrees(project)) == 1
        raise RuntimeError("in between")


def open_and_told(project: Project, *arguments: str, said: str) -> None:
    """A run whose suspicion cannot be confirmed is reported, passes this gate, and says why it is open."""
    ended = project.run(*arguments)
    assert ended.status == 0, ended.text
    found = comparison(project)
    assert found.state == "unproven"
    assert said.replace("`", "'") in found.why.replace("`", "'")
    assert "cannot run beside the change" not in ended.out
    assert said in " ".join(ended.out.split()), ended.text
    assert worktrees(project) == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("agent.yaml", "test_cases: 7\n", "the suite of the base commit cannot be read"),
        ("agent.py", "import nothing_of_the_kind\n", "nothing_of_the_kind"),
    ],
)
def test_a_base_that_cannot_run(project: Project, file: str, content: str, said: str) -> None:
    (project.folder / file).write_text(content, encoding="utf-8")
    commit(project.folder)
    project.write()
    baseline = project.past_as_committed(1)
    project.write(broken=names(0, 12))
    open_and_told(project, "--baseline", baseline, said=said)


def test_a_shallow_clone(project: Project) -> None:
    project.past(1)
    break_cases(project, names(0, 12))
    clone = project.folder.parent / "clone"
    git(project.folder.parent, "clone", "--quiet", "--depth", "1", f"file://{project.folder}", str(clone))
    project.patch.chdir(clone)
    here = Project(clone, project.command, project.patch)
    open_and_told(here, "--baseline", str(project.folder / "base-0"), said="set 'fetch-depth: 0' of actions/checkout")


@pytest.mark.parametrize("commit_id", ["--output=x", "HEAD", "", "c" * 40, "main"])
def test_what_is_no_commit_of_this_repository(project: Project, commit_id: str) -> None:
    with pytest.raises(ControlError, match="fetch-depth"), base_of(commit_id):
        pass
    assert not (project.folder / "x").exists()
    assert worktrees(project) == []


# The agent under test cannot make itself the base


def test_a_replaced_base_commit_is_not_used(project: Project) -> None:
    began = git(project.folder, "rev-parse", "HEAD")
    baseline = project.past(1)
    bad = break_cases(project, names(0, 12))
    git(project.folder, "replace", "-f", began, bad)
    ended = project.run("--baseline", baseline)
    assert ended.status == 1, ended.text
    assert comparison(project).state == "proven"


@pytest.fixture
def owned(project: Project) -> Iterator[Owner]:
    """A user that the repository belongs to, and that user code runs as."""
    if os.geteuid() != 0:
        pytest.skip("needs the rights of root")
    owner = Owner(4321, 4322)
    # The directories of pytest are closed for other users.
    with tempfile.TemporaryDirectory(prefix="agenteval-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        moved = shutil.copytree(project.folder, Path(folder) / "project")
        for path in (moved, *moved.rglob("*")):
            os.chown(path, owner.uid, owner.gid)
        project.patch.chdir(moved)
        project.patch.setenv("HOME", str(moved))
        project.patch.setenv("PATH", "/usr/bin:/bin")
        project.patch.setenv("TMPDIR", "/tmp")
        project.patch.setattr("tempfile.tempdir", None)
        with confined(owner=owner):
            yield owner


@pytest.mark.long
@pytest.mark.parametrize("setup", ["", 'echo ok >new; touch "$VIRTUAL_ENV/installed"; touch ~/of-the-base'])
def test_user_code_cannot_change_the_base_agent(owned: Owner, setup: str) -> None:
    here = Path.cwd()
    head = run_confined(["git", "rev-parse", "HEAD"], here, 60).stdout.strip()
    with base_of(head, SUITE, setup=setup) as agents:
        (agent,) = {id(agent): agent for agent in agents.values()}.values()
        there = Path(agent.directory)
        home = there.parent / "home"
        tries = [f"echo bad >{there}/agent.py", f"echo bad >{there}/json.py", f"rm {there}/agent.py"]
        tries += [f"mv {there} {there}.old", f"mv {there.parent} {there.parent}.old", f"chmod 777 {there}"]
        tries += [f"touch {home}/usercustomize.py", f"ls {home}", f"mv {home} {home}.old"]
        if setup:
            assert (there / "new").is_file()
            assert (home / "of-the-base").is_file()
            tries.append(f"echo bad >{agent.env['VIRTUAL_ENV']}/bin/python3")
        script = "; ".join(f"({line}) >/dev/null 2>&1 && echo '{line}'" for line in tries)
        done = run_confined(["/bin/sh", "-c", f"{script}; cat {there}/agent.py >/dev/null && echo end"], here, 60)
        assert done.stdout == "end\n"
    assert not there.exists()
    assert len(run_confined(["git", "worktree", "list"], here, 60).stdout.splitlines()) == 1


LOOK_AROUND = """
import os, pathlib, subprocess
def reply(request):
    pathlib.Path("written-here").write_text("by the base agent")
    ends = subprocess.run(["kill", "-0", request["input"]], capture_output=True).returncode
    home = pathlib.Path.home()
    (home / "cached").touch()
    return " ".join([str(os.getuid()), str(home), os.environ["PIP_CACHE_DIR"], os.environ["TMPDIR"], str(ends)])
"""


@pytest.mark.long
def test_the_base_agent_writes_to_its_directory_and_to_nothing_of_the_agent(owned: Owner) -> None:
    here = Path.cwd()
    (here / "agent.py").write_text(LOOK_AROUND, encoding="utf-8")
    git_of = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    assert run_confined([*git_of, "commit", "--quiet", "--all", "--message", "x"], here, 60).returncode == 0
    head = run_confined(["git", "rev-parse", "HEAD"], here, 60).stdout.strip()
    shared = {"HOME": str(here), "PIP_CACHE_DIR": str(here / "pip"), "TMPDIR": str(here / "tmp")}
    with (
        confined(variables=shared),
        control_of(head, SUITE, setup="pip config list") as control,
        subprocess.Popen(["setpriv", "--reuid", str(owned.uid), "--clear-groups", "sleep", "60"]) as process,
    ):
        agent = next(iter(control.cases.values())).agent
        there = Path(agent.directory)
        spec = replace(agent, options={"interpreter": "/usr/bin/python3"})
        said = answer(spec, request(str(process.pid))).response.split()
        process.kill()
        uid, home, pip, temporary, status = said
        assert int(uid) not in {0, owned.uid}
        # Every place that programs share is its own, and it cannot reach programs of the agent.
        assert {Path(path).is_relative_to(there.parent / "home") for path in (home, pip, temporary)} == {True}
        assert status == "1"
        assert (there / "written-here").stat().st_uid == int(uid)
    assert not (here / "pip").exists()


def test_programs_of_the_repository_do_not_run(project: Project) -> None:
    """Whatever an earlier step wrote into the repository, git starts nothing of it."""
    folder, ran = project.folder, project.folder.parent / "ran"
    head = git(folder, "rev-parse", "HEAD")
    program = folder.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    hooks = folder.parent / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(program, hooks / name)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* filter=bad\n", encoding="utf-8")
    settings = {
        **{f"filter.bad.{name}": str(program) for name in ("smudge", "clean", "process")},
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(program),
        "core.sshCommand": str(program),
        "credential.helper": f"!{program}",
        "core.gitProxy": str(program),
        "core.alternateRefsCommand": str(program),
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.uploadpack": str(program),
        "core.pager": str(program),
        "core.repositoryFormatVersion": "1",
    }
    for name, value in settings.items():
        git(folder, "config", name, value)
    with base_of(head, SUITE) as agents:
        assert len(agents) == CASES
    # The commit is in no object of the clone; the remote of the configuration is not asked.
    with pytest.raises(ControlError), base_of("c" * 40, SUITE):
        pass
    assert not ran.exists()


def test_a_folder_that_became_a_link_does_not_lead_the_base_agent_away(project: Project) -> None:
    folder = project.folder / "bot"
    folder.mkdir()
    write_suite(folder, [case("a")], agent=python_agent(folder, AGENT.format(log=str(project.log))))
    head = commit(project.folder)
    elsewhere = shutil.copytree(folder, project.folder.parent / "elsewhere")
    with prepared(head, Path("bot") / SUITE) as (spec, found):
        shutil.rmtree(folder)
        folder.symlink_to(elsewhere)
        with opened_control(found, spec) as control:
            (control_case,) = control.cases.values()
            assert "agenteval-control-" in control_case.agent.directory


# Agents that no worktree holds


@pytest.mark.parametrize("place", [".", "bots/support"])
def test_from_any_directory_of_the_repository(project: Project, place: str) -> None:
    folder = project.folder / place
    folder.mkdir(parents=True, exist_ok=True)
    write_suite(folder, [case("a")], agent=python_agent(folder, AGENT.format(log=str(project.log))))
    head = commit(project.folder)
    project.patch.chdir(folder)
    for suites in ((), (SUITE,), (folder / SUITE,)):
        with base_of(head, *suites) as agents:
            prefix = "" if place == "." else f"{place}/"
            (agent,) = agents.values()
            assert list(agents) == [f"{prefix}agent.yaml::a"]
            assert Path(agent.directory).name == Path(place).name or place == "."
            assert not Path(agent.directory).is_relative_to(project.folder)
            assert (Path(agent.directory) / "agent.py").is_file()
        assert worktrees(project) == []


@pytest.mark.long
def test_a_killed_run_is_resumed_without_asking_a_finished_case_twice(project: Project) -> None:
    baseline = project.past(1)
    break_cases(project, names(0, 12))
    project.log.unlink()
    arguments = ("run", "--quiet", "--baseline", baseline)
    with subprocess.Popen(
        [str(AGENTEVAL), *arguments],
        cwd=project.folder,
        env=environment(HANGS="c09"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert eventually(lambda: any(item.case == "c09" for item in beside(project.asked())))
        assert eventually(lambda: len(_finished(project)) >= 5)
        process.kill()
    before = len(project.asked())
    ended = project.run("--baseline", baseline, "--resume")
    assert ended.status == 1, ended.text
    resumed = comparison(project)
    # Some answers were on their way when it was killed.
    assert resumed.cost is not None
    assert len(project.asked()) <= CASES + resumed.cost.calls - (before - DEFAULT_CONCURRENCY)
    assert (resumed.state, resumed.stage) == ("proven", "beside")
    # Resumed once more, nothing is left to ask.
    assert project.run("--baseline", baseline, "--resume").status == 1
    assert Counter("agenteval-control" in item.agent for item in project.asked()) == {}
    assert comparison(project) == resumed


def _finished(project: Project) -> set[str]:
    """The cases that the journal of the newest pass contains."""
    newest = max(
        (project.folder / "agenteval-report").glob("confirmation-*.jsonl"), key=lambda file: file.stat().st_mtime
    )
    lines = newest.read_text(encoding="utf-8").splitlines(keepends=True)
    cases = [found for line in lines if line.endswith("\n") and (found := json.loads(line).get("case"))]
    return {str(found["name"]) for found in cases}
