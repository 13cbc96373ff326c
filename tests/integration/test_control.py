"""The base commit's agent runs beside the pull request's, in a git worktree."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.integration.gated_suite import AGENT, CASES, Project, RecordedQuestion, names
from tests.support import Answer, case, python_agent, serving, write_suite

from agenteval.core.text.redact import Redactor
from agenteval.results.model import Comparison
from agenteval.run.confirm.base_agent import ControlError, base_agents
from agenteval.run.resolve.sources import Sources
from agenteval.suite.model import AgentSpec

BASE = {"confirm": "base"}
SUITE = Path("agent.yaml")


def git(folder: Path, *arguments: str) -> str:
    """Real git, without anything of the machine's configuration."""
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


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
    found.write(gate=BASE)
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
    left = [path.name for path in (project.folder.parent / "temporary").glob("agenteval-base-*")]
    return [line for line in listed if str(project.folder) not in line] + left


def asked_of(asked: Iterable[RecordedQuestion], prefix: str) -> list[RecordedQuestion]:
    return [item for item in asked if item.session.startswith(prefix)]


@contextmanager
def base_of(commit_id: str | None, *suites: Path, setup: str = "") -> Iterator[Mapping[str, AgentSpec]]:
    """The agents of the commit at which the current one left another, for suites in the current directory."""
    with base_agents(Sources(Path.cwd(), suites), commit_id, setup, Redactor([])) as agents:
        yield agents


def break_cases(project: Project, broken: str) -> str:
    project.write(broken=broken, gate=BASE)
    return commit(project.folder)


def test_both_commits_answer_side_by_side(project: Project) -> None:
    baseline = project.past(1)
    break_cases(project, names(0, 12))
    ended = project.run("--baseline", baseline)
    assert ended.status == 1, ended.text
    found = comparison(project)
    assert (found.verdict, found.policy["confirm"], found.policy["confirmed"]) == ("regressed", "base", True)
    second, control = (asked_of(project.asked(), prefix) for prefix in ("second:", "control:"))
    assert Counter(item.case for item in second) == Counter(item.case for item in control)
    assert len(second) == CASES
    assert {item.agent for item in second} == {str(project.folder / "agent.py")}
    (elsewhere,) = {item.agent for item in control}
    assert "agenteval-base-" in elsewhere
    assert not Path(elsewhere).exists()
    assert worktrees(project) == []


def test_a_drift_that_hits_both_commits_is_no_regression(project: Project) -> None:
    baseline = project.past(1)
    commit(project.folder)
    # The environment breaks the agents of every commit.
    ended = project.run("--baseline", baseline, BROKEN=names(0, 12))
    assert ended.status == 0, ended.text
    found = comparison(project)
    assert (found.policy["second_run"], found.policy["confirmed"]) == (True, True)
    assert found.verdict != "regressed"
    project.configure({"confirm": "head"})
    assert project.run("--baseline", baseline, BROKEN=names(0, 12)).status == 1


def test_the_base_is_where_the_branch_began(project: Project) -> None:
    began = git(project.folder, "rev-parse", "HEAD")
    break_cases(project, names(0, 20))
    baseline = project.past(1)
    git(project.folder, "checkout", "--quiet", "-b", "feature", began)
    later = git(project.folder, "rev-parse", "main")
    with base_of(later, SUITE) as agents:
        (directory,) = {agent.directory for agent in agents.values()}
        assert "BROKEN = ''" in (Path(directory) / "agent.py").read_text(encoding="utf-8")
    assert baseline == "base-0"


def test_agents_are_shared_as_they_are_in_the_suite(project: Project) -> None:
    head = git(project.folder, "rev-parse", "HEAD")
    with base_of(head, SUITE) as agents:
        assert len(agents) == CASES
        assert len({id(agent) for agent in agents.values()}) == 1


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


def test_a_case_that_is_new_runs_without_a_partner(project: Project) -> None:
    baseline = project.past(1)
    project.write(broken=names(0, 12), gate=BASE, cases=CASES + 2)
    commit(project.folder)
    assert project.run("--baseline", baseline).status == 1
    assert len(asked_of(project.asked(), "second:")) == CASES + 2
    assert len(asked_of(project.asked(), "control:")) == CASES


def test_setup_runs_for_the_base_commit_too(project: Project) -> None:
    (project.folder / "needed.txt").write_text("before", encoding="utf-8")
    head = commit(project.folder)
    (project.folder / "needed.txt").write_text("after", encoding="utf-8")
    commit(project.folder)
    setup = 'cp needed.txt "$VIRTUAL_ENV/installed.txt"'

    with base_of(head, SUITE, setup=setup) as agents:
        assert len({id(agent) for agent in agents.values()}) == 1
        venv = Path(next(iter(agents.values())).env["VIRTUAL_ENV"])
        assert (venv / "installed.txt").read_text(encoding="utf-8") == "before"

    assert not venv.exists()
    assert worktrees(project) == []


# Whatever goes wrong, nothing is left over, and the run is reported


def test_a_base_that_cannot_be_set_up(project: Project) -> None:
    head = git(project.folder, "rev-parse", "HEAD")
    setup = "true\ncat only-needed-later.txt"

    with pytest.raises(ControlError, match=r"`cat only-needed-later\.txt`, ended with exit status 1$"):
        base_of(head, SUITE, setup=setup).__enter__()

    assert worktrees(project) == []


def test_the_worktree_goes_after_an_error(project: Project) -> None:
    head = git(project.folder, "rev-parse", "HEAD")

    with pytest.raises(RuntimeError, match="in between"):
        fail_beside(project, head)
    assert worktrees(project) == []


def fail_beside(project: Project, head: str) -> None:
    with base_of(head, SUITE):
        assert len(worktrees(project)) == 2
        raise RuntimeError("in between")


def open_and_told(project: Project, *arguments: str, said: str) -> None:
    """A run whose suspicion cannot be confirmed is reported, passes this gate, and says why it is open."""
    ended = project.run(*arguments)
    assert ended.status == 0, ended.text
    found = comparison(project)
    assert (found.verdict, found.policy["confirmed"]) == ("inconclusive", False)
    assert said in found.policy["reason"]
    assert "warning: nothing was run again: " in ended.out
    assert said in ended.out
    assert worktrees(project) == []


def test_a_base_whose_suite_cannot_be_read(project: Project) -> None:
    (project.folder / "agent.yaml").write_text("test_cases: 7\n", encoding="utf-8")
    commit(project.folder)
    project.write(gate=BASE)
    baseline = project.past(1)
    project.write(broken=names(0, 12), gate=BASE)
    open_and_told(project, "--baseline", baseline, said="cannot use the suite as it was at the base commit")


def test_a_base_whose_agent_cannot_start(project: Project) -> None:
    (project.folder / "agent.py").write_text("import nothing_of_the_kind\n", encoding="utf-8")
    commit(project.folder)
    project.write(gate=BASE)
    baseline = project.past(1)
    project.write(broken=names(0, 12), gate=BASE)
    open_and_told(project, "--baseline", baseline, said="nothing_of_the_kind")


def test_a_shallow_clone(project: Project) -> None:
    project.past(1)
    break_cases(project, names(0, 12))
    clone = project.folder.parent / "clone"
    git(project.folder.parent, "clone", "--quiet", "--depth", "1", f"file://{project.folder}", str(clone))
    project.patch.chdir(clone)
    here = Project(clone, project.command, project.patch)
    open_and_told(here, "--baseline", str(project.folder / "base-0"), said="actions/checkout needs `fetch-depth: 0`")


def test_outside_of_a_repository(project: Project) -> None:
    baseline = project.past(1)
    project.write(broken=names(0, 12), gate=BASE)
    outside = project.folder.parent / "outside"
    outside.mkdir()
    for name in ("agent.yaml", "agent.py", "agenteval.yaml"):
        (outside / name).write_bytes((project.folder / name).read_bytes())
    project.patch.chdir(outside)
    with pytest.raises(ControlError, match="not a git repository"), base_of("c" * 40):
        pass
    assert baseline == "base-0"


@pytest.mark.parametrize("commit_id", ["--output=x", "HEAD", "", "c" * 40, "main"])
def test_what_is_no_commit_of_this_repository(project: Project, commit_id: str) -> None:
    with pytest.raises(ControlError, match="fetch-depth"), base_of(commit_id):
        pass
    assert not (project.folder / "x").exists()
    assert worktrees(project) == []


def test_a_baseline_of_unknown_origin(project: Project) -> None:
    with pytest.raises(ControlError, match="of which commit"), base_of(None):
        pass


def test_without_git(project: Project) -> None:
    project.patch.setenv("PATH", "")
    with pytest.raises(ControlError, match="needs git"), base_of("c" * 40):
        pass


# Agents that no worktree holds


def test_an_agent_behind_http_is_the_same_for_every_commit(project: Project) -> None:
    with serving(lambda body: Answer({"response": body["input"]})) as service:
        write_suite(project.folder, [case(name) for name in names(0, CASES).split()], agent={"http": service.url})
        commit(project.folder)
        project.past(1)
    with serving(lambda _: Answer({"response": "wrong"})) as broken:
        write_suite(project.folder, [case(name) for name in names(0, CASES).split()], agent={"http": broken.url})
        commit(project.folder)
        open_and_told(project, "--baseline", "base-0", said="name it with --control")


def test_another_deployment_stands_for_the_base_commit(project: Project) -> None:
    suite = [case(name) for name in names(0, CASES).split()]
    with (
        serving(lambda body: Answer({"response": body["input"]})) as old,
        serving(lambda _: Answer({"response": "wrong"})) as new,
    ):
        write_suite(project.folder, suite, agent={"http": old.url})
        baseline = project.past(1)
        old.requests.clear()
        write_suite(project.folder, suite, agent={"http": new.url})
        ended = project.run("--baseline", baseline, "--control", old.url)
        assert ended.status == 1, ended.text
        second = [body for body in new.requests if body["session"].startswith("second:")]
        control = [body for body in old.requests if body["session"].startswith("control:")]
        assert (len(second), len(control)) == (CASES, CASES)
        assert comparison(project).verdict == "regressed"
        # One that is as bad shows that the change is none of the pull request's.
        assert project.run("--baseline", baseline, "--control", new.url).status == 0


def test_a_control_that_is_not_defined_is_told_before_anything_runs(project: Project) -> None:
    ended = project.run("--control", "nobody")
    assert ended.status == 2
    assert "--control: no agent is called 'nobody'" in ended.err
    assert project.asked() == []


def test_a_control_without_a_use_is_told(project: Project) -> None:
    project.configure({})
    ended = project.run("--control", "command:cat")
    assert ended.status == 0, ended.text
    assert "warning: --control has no effect" in ended.out
