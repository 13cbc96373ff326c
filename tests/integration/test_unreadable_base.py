"""A pull request whose base commit cannot be read, or has no suites: the change never chooses its own rules."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.git_server import commit, git
from tests.integration.host import Host
from tests.support import case, python_agent, write_suite

from agenteval.core.errors import ConfigError
from agenteval.run.base_commit import ControlRule
from agenteval.run.config import Settings
from agenteval.run.context import RunContext
from agenteval.run.git import Provenance
from agenteval.run.merge import merge_files
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{number:064d}\nsize 7\n"
AGENT = "def reply(request):\n    return {answer}\n"
RIGHT, WRONG = AGENT.format(answer="request['input']"), AGENT.format(answer="'wrong'")
F1 = {"type": "standard", "metric": "f1_score", "threshold": 1.0}
CASES = [case(name, f"say {name}", f"say {name}") for name in ("c1", "c2", "c3", "c4", "c5")]


@dataclass
class Proposal:
    """A repository with a baseline, and a branch that makes the agent wrong and loosens all rules."""

    folder: Path
    settings: Settings = field(default_factory=lambda: Settings(quiet=True, baseline=Path("../base")))
    event: str = "pull_request"

    def write(self, agent: str, threshold: float, **keys: Any) -> None:
        metrics = [{"type": "standard", "metric": "equality", "threshold": threshold}, F1]
        made = python_agent(self.folder, agent)
        write_suite(self.folder, CASES, agent=made, evaluations={"metrics": metrics})
        (self.folder / "agenteval.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")

    def on_main(self) -> None:
        """Commit to the base branch, and check the change out again."""
        base = commit(self.folder)
        git(self.folder, "branch", "--force", "main", base)

    def change(self) -> None:
        """Change nothing but what fails the job."""
        self.write(RIGHT, 1.0, gate={"fail_on": "none"})

    def loosen(self) -> None:
        """Break the agent, and let everything pass."""
        self.write(WRONG, 0.0, gate={"fail_on": "none"})

    def evaluated(self) -> RunOutcome:
        """Evaluate the merge of the branch, as its job does."""
        return run(self.settings, self.proposed())

    def proposed(self) -> RunContext:
        """Check the merge of the branch out; return what its job contributes."""
        folder = self.folder
        base, change = git(folder, "rev-parse", "main"), commit(folder)
        tree = git(folder, "rev-parse", f"{change}^{{tree}}")
        merge = git(folder, "commit-tree", tree, "-p", base, "-p", change, "-m", "merge")
        git(folder, "update-ref", "--no-deref", "HEAD", merge)
        if self.event == "pull_request":
            rule, ref = ControlRule("pull-request", merge, base, "main"), "refs/pull/7/merge"
        else:
            rule, ref = ControlRule("previous", before=base), "refs/heads/gh-readonly-queue/main/pr-7"
        return RunContext(Provenance(merge, ref, "org/bot", "7"), control=Host(rule))


@pytest.fixture
def proposal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proposal:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / ".gitignore").write_text("agenteval-report\n__pycache__\n", encoding="utf-8")
    made = Proposal(folder)
    made.write(RIGHT, 1.0)
    commit(folder)
    assert run(Settings(quiet=True, out=Path("../base"))).exit_status == 0
    git(folder, "checkout", "--quiet", "--detach")
    return made


# What makes the base commit unreadable


def lost_object(proposal: Proposal) -> None:
    proposal.change()
    path = git(proposal.folder, "rev-parse", "main:agenteval.yaml")
    (proposal.folder / ".git" / "objects" / path[:2] / path[2:]).unlink()


def broken_configuration(proposal: Proposal) -> None:
    (proposal.folder / "agenteval.yaml").write_text("gate: {windw: 3}\n", encoding="utf-8")
    proposal.on_main()
    proposal.change()


def broken_suite(proposal: Proposal) -> None:
    (proposal.folder / "agent.yaml").write_text("test_cases: 7\n", encoding="utf-8")
    proposal.on_main()
    proposal.change()


def converted_suite(proposal: Proposal) -> None:
    folder = proposal.folder
    (folder / ".gitattributes").write_text("agent.yaml filter=lfs\n", encoding="utf-8")
    suite, content = folder / "agent.yaml", (folder / "agent.yaml").read_text(encoding="utf-8")
    suite.write_text(POINTER.format(number=1), encoding="utf-8")
    proposal.on_main()
    suite.write_text(POINTER.format(number=2), encoding="utf-8")
    commit(folder)
    # The commit has another pointer, and the program of the filter writes the content.
    suite.write_text(content, encoding="utf-8")
    git(folder, "update-index", "--assume-unchanged", "agent.yaml")


UNREADABLE: dict[str, tuple[Callable[[Proposal], None], str]] = {
    "an object is missing": (lost_object, "run `git fetch --depth=1 origin "),
    "its configuration is broken": (broken_configuration, "agenteval.yaml:1: gate.windw: "),
    "its suite is broken": (broken_suite, "merge a repair into the base branch"),
    "its suite is converted": (converted_suite, "check the repository out without it"),
}


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
@pytest.mark.parametrize("why", UNREADABLE)
def test_a_base_commit_that_cannot_be_read_makes_the_run_unproven(proposal: Proposal, why: str, event: str) -> None:
    make, fix = UNREADABLE[why]
    make(proposal)
    proposal.event = event
    outcome = proposal.evaluated()
    assert outcome.gate.verdict == "unproven"
    # The setting of the change that nothing fails the job does not count.
    assert outcome.exit_status == 3
    assert outcome.gate.headline.startswith(
        "the change could choose its own rules: those of the base commit cannot be read: "
    )
    assert fix in outcome.gate.headline
    assert [(item.kind, item.effect) for item in outcome.results.run.integrity if item.kind == "rules"] == [
        ("rules", "unproven")
    ]


# What is missing in the base commit, and not needed for its rules


def one_of_two_suites(proposal: Proposal) -> None:
    """The change removes the suite, and names another one of the base commit."""
    write_suite(proposal.folder, [case("easy", "wrong", "wrong")], agent=python_agent(proposal.folder, RIGHT))
    (proposal.folder / "agent.yaml").rename(proposal.folder / "other.yaml")
    git(proposal.folder, "checkout", "--", "agent.yaml")
    proposal.on_main()
    (proposal.folder / "agent.yaml").unlink()
    (proposal.folder / "agent.py").write_text(WRONG, encoding="utf-8")
    proposal.settings = replace(proposal.settings, suites=(Path("other.yaml"),))


def converted_data(proposal: Proposal) -> None:
    folder = proposal.folder
    (folder / ".gitattributes").write_text("*.bin filter=lfs\n", encoding="utf-8")
    (folder / "data.bin").write_text(POINTER.format(number=1), encoding="utf-8")
    proposal.on_main()
    proposal.loosen()
    (folder / "data.bin").write_text(POINTER.format(number=2), encoding="utf-8")
    commit(folder)
    (folder / "data.bin").write_text("content", encoding="utf-8")
    git(folder, "update-index", "--assume-unchanged", "data.bin")


READABLE: dict[str, tuple[Callable[[Proposal], None], int, str]] = {
    "the change names another suite": (one_of_two_suites, 1, "unproven"),
    "data are converted": (converted_data, 3, "unproven"),
}


@pytest.mark.parametrize("why", READABLE)
def test_the_rules_of_the_base_commit_need_only_its_suites(proposal: Proposal, why: str) -> None:
    make, status, verdict = READABLE[why]
    for _ in range(2):
        again = replace(proposal.settings, out=Path("../base"))
        assert run(again).exit_status == 0
    make(proposal)
    outcome = proposal.evaluated()
    assert not any(item.kind == "rules" for item in outcome.results.run.integrity)
    assert outcome.results.comparison is not None
    assert (outcome.exit_status, outcome.results.comparison.state) == (status, verdict), outcome.gate


# Results of other steps


@pytest.mark.parametrize("threshold", [1.0, 0.0])
def test_results_that_the_base_commit_has_not_judged_are_unproven(proposal: Proposal, threshold: float) -> None:
    equality = {"type": "standard", "metric": "equality", "threshold": threshold}
    easy = [*CASES[:4], {**CASES[4], "evaluations": [equality, F1]}]
    suite = yaml.safe_load((proposal.folder / "agent.yaml").read_text(encoding="utf-8"))
    (proposal.folder / "agent.yaml").write_text(yaml.safe_dump({**suite, "test_cases": easy}), encoding="utf-8")
    context = proposal.proposed()
    run(Settings(quiet=True, out=Path("../own")))
    outcome = merge_files([Path("../own")], Path("../decided"), proposal.settings, context)
    if threshold == 1.0:
        assert (outcome.gate.verdict, outcome.exit_status) == ("passed", 0)
        return
    assert (outcome.gate.verdict, outcome.exit_status) == ("unproven", 3)
    assert outcome.gate.headline.startswith(
        "the change could choose its own rules: those of the base commit did not judge 1 case (c5)"
    )


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
def test_results_of_another_commit_are_refused(proposal: Proposal, event: str) -> None:
    proposal.event = event
    proposal.change()
    context = proposal.proposed()
    with pytest.raises(
        ConfigError, match=r"these results are of commit \w+, and this run is for \w+; evaluate it first"
    ):
        merge_files([Path("../base")], Path("../decided"), Settings(), context)


@pytest.mark.parametrize(
    ("event", "name", "value", "is_refused"),
    [
        ("pull_request", "ref", "refs/pull/8/merge", True),
        ("pull_request", "ref", "refs/pull/70/merge", True),
        ("pull_request", "ref", "refs/pull/7/head", False),
        # A program beside the job does not know that it is in a workflow.
        ("pull_request", "ref", "refs/heads/feature", False),
        ("merge_group", "ref", "refs/pull/7/merge", True),
        ("pull_request", "repository", "org/other", True),
        ("pull_request", "repository", "Org/Bot", False),
        ("pull_request", "repository", None, False),
    ],
)
def test_results_of_another_pull_request_or_repository_with_the_head_are_refused(
    proposal: Proposal, event: str, name: str, value: str | None, is_refused: bool
) -> None:
    proposal.event = event
    proposal.change()
    context = proposal.proposed()
    assert context.provenance is not None
    other: dict[str, Any] = {name: value}
    run(Settings(quiet=True, out=Path("../own")), RunContext(replace(context.provenance, **other)))
    given = ([Path("../own")], Path("../decided"), proposal.settings, context)
    if is_refused:
        with pytest.raises(ConfigError, match=f"these results are of (repository )?{value}, and this run is for "):
            merge_files(*given)
    else:
        assert getattr(merge_files(*given).results.run, name) == (value or "org/bot")


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
@pytest.mark.parametrize("is_link", [False, True])
def test_results_among_the_files_of_a_change_are_refused(proposal: Proposal, event: str, is_link: bool) -> None:
    proposal.event = event
    proposal.loosen()
    shutil.copytree(proposal.folder.parent / "base", proposal.folder / "forged")
    if is_link:
        (proposal.folder / "results").symlink_to("forged")
    context = proposal.proposed()
    given = Path("results" if is_link else "forged")
    with pytest.raises(ConfigError, match="this file is in the commit of the change, so no step of this run has"):
        merge_files([given], Path("../decided"), Settings(), context)


# The first suite


@pytest.mark.parametrize("agent", [RIGHT, WRONG], ids=["right", "wrong"])
def test_the_first_suite_is_decided_by_itself(proposal: Proposal, agent: str) -> None:
    for name in ("agent.yaml", "agenteval.yaml", "agent.py"):
        (proposal.folder / name).unlink()
    proposal.on_main()
    proposal.write(agent, 1.0)
    proposal.settings = Settings(quiet=True)
    outcome = proposal.evaluated()
    assert (outcome.gate.verdict, outcome.exit_status) == (("passed", 0) if agent == RIGHT else ("failed", 1))
    assert [(item.kind, item.effect) for item in outcome.results.run.integrity] == [("rules", "absolute")]
    assert not any("cannot be read" in text for text in outcome.warnings)
