"""The second stage judges a fork's results by the base branch, and waits for somebody who accepts them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from github.PullRequest import PullRequest
from tests.peers.action_step import Step, as_process, job_environment, process_environment, written
from tests.peers.forks import FORK, first_stage, fork_pull_request
from tests.peers.github_actions import zipped
from tests.peers.github_emulator import OWNER, REPOSITORY, STRANGER, STRANGER_TOKEN
from tests.peers.github_service import GithubService
from tests.support import AGENTEVAL, PATIENCE_S, agenteval, case, eventually, write_suite

from agenteval.github.context import Context
from agenteval.github.fork_publish import Published, publish_first_stage
from agenteval.github.pull_request import RESULTS_LABEL

pytestmark = pytest.mark.peer

_NUMBERS = count(1)
# Runs of the store begin on this day.
LATER = datetime(2026, 3, 2, tzinfo=UTC)
EARLIER = LATER - timedelta(days=2)
NOW, HOUR = timedelta(0), timedelta(hours=1)
Json = dict[str, Any]
GREEN: Json = {"verdict": "passed", "exit_status": 0, "headline": "passed", "reasons": []}
STRICT: Json = {"gate": {"fail_on": ["errors"]}}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """A run in which one of three cases failed."""
    folder = tmp_path_factory.mktemp("evaluated")
    cases = [case("fine"), case("also"), case("wrong", ground_truth="something else")]
    write_suite(
        folder, cases, agent={"command": ["python3", "-c", "import json, sys; print(json.load(sys.stdin)['input'])"]}
    )
    ran = agenteval("run", "--quiet", "--out", "report", cwd=folder)
    assert ran.status == 1, ran.text
    written: Json = json.loads((folder / "report" / "results.json").read_text(encoding="utf-8"))
    return written


@dataclass
class Fork:
    """A repository with rules, and a pull request from its fork."""

    github: GithubService
    folder: Path
    results: Json
    place: str

    def rules(self, **files: Any) -> None:
        """Write files beside the suite on the base branch; a mapping is ``agenteval.yaml``."""
        repository = self.github.emulator.api().get_repo(REPOSITORY)
        for name, content in files.items():
            text = content if isinstance(content, str) else yaml.safe_dump(content)
            repository.create_file(f"{self.place}/{name.replace('__', '.')}", "Rules", text, branch="main")

    def artifact(
        self, pull: PullRequest, gate: Json | None = None, ref: str | None = None, base_ref: str | None = None
    ) -> bytes:
        """The results of the first stage, which decided as ``gate`` says, or as it did."""
        changed = json.loads(json.dumps(self.results))
        changed["run"] |= {"commit": pull.head.sha, "ref": ref, "base_ref": base_ref}
        changed["suites"][0]["path"] = f"{self.place}/agent.yaml"
        changed["gate"] |= gate or {}
        return zipped(json.dumps(changed))

    def stage(self, event: Json) -> tuple[dict[str, str], Path]:
        """The environment of the second stage's step, and its event."""
        environment = job_environment(self.github.url, "workflow_run", mode="publish", check_name="agent evaluation")
        stage = {"GITHUB_WORKFLOW": "agenteval comment", "GITHUB_JOB": "publish"}
        return environment | stage, written(self.folder, event)

    def publish(self, event: Json, **inputs: str) -> tuple[Published, ...]:
        environment, path = self.stage(event)
        named = {f"INPUT_{name.upper().replace('_', '-')}": text for name, text in inputs.items()}
        return publish_first_stage(Context.read(environment | named | {"GITHUB_EVENT_PATH": str(path)}))

    def step(self, workspace: Path, event: Json) -> Step:
        return as_process(workspace, *self.stage(event))

    def run(self, pull: PullRequest, gate: Json | None = GREEN, head: str = REPOSITORY, **options: Any) -> Json:
        """A run of the first stage that decided so, and the event that tells of it."""
        return first_stage(self.github, pull, self.artifact(pull, gate), head, **options)

    @property
    def conclusion(self) -> str:
        """The conclusion of the only check run."""
        [made] = self.github.proxy.called("POST", "/check-runs")
        assert json.loads(made.body)["name"] == "agent evaluation"
        return str(json.loads(self.github.proxy.called("PATCH", "/check-runs/")[-1].body)["conclusion"])

    def conclusions(self, pull: PullRequest) -> list[str]:
        """What the check runs of the name show on the head, the oldest first."""
        runs = [json.loads(made.body) for made in self.github.proxy.called("POST", "/check-runs")]
        assert {run["head_sha"] for run in runs} == {pull.head.sha}
        repository = self.github.emulator.api().get_repo(REPOSITORY)
        ids = {request.route.rpartition("/")[2] for request in self.github.proxy.called("PATCH", "/check-runs/")}
        return [repository.get_check_run(int(number)).conclusion for number in sorted(ids, key=int)]


@pytest.fixture
def fork(github: GithubService, tmp_path: Path, results: Json) -> Fork:
    return Fork(github, tmp_path, results, f"forks/{next(_NUMBERS)}")


def comment_of(pull: PullRequest) -> str:
    [comment] = list(pull.get_issue_comments())
    return str(comment.body)


# The sentence below the heading of a comment.
DECISIONS = {"passed": "The check passes", "failed": "The check fails"}
LAX = {"fail_on": [], "max_error_rate": 0.1, "quarantine": []}
Make = Callable[[GithubService, int], None]


def label(by: str, at: datetime, kind: str = "labeled", name: str = RESULTS_LABEL) -> Make:
    return lambda github, number: github.labels.event(number, kind, name, by, at)


@pytest.mark.parametrize(
    ("make", "inputs", "conclusion", "said"),
    [
        (lambda *_: None, {}, "action_required", "and runs the job again that published this"),
        (label(OWNER, LATER), {}, "success", f"accepted by {OWNER}"),
        (label(STRANGER, LATER), {}, "action_required", "does not count: this needs write access"),
        (label(OWNER, EARLIER), {}, "action_required", "is older than this commit and does not count"),
        (label(OWNER, LATER, name="agenteval: accept wrong"), {}, "action_required", "a person with write access"),
        (lambda *_: None, {"fork_results": "accepted"}, "success", ""),
    ],
    ids=["nobody", "maintainer", "stranger", "before the push", "another label", "environment"],
)
def test_who_accepts_the_results_of_a_fork(
    fork: Fork, make: Make, inputs: dict[str, str], conclusion: str, said: str
) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork_pull_request(fork.github)
    event = fork.run(pull, head=FORK)
    make(fork.github, pull.number)

    [published] = fork.publish(event, **inputs)

    assert (published.verdict, published.contradiction) == ("passed", "")
    assert fork.conclusion == conclusion
    assert said in comment_of(pull).replace("\\", "")
    # An acceptance makes no failure green.
    fork.github.proxy.forget()
    [published] = fork.publish(fork.run(pull, None, FORK), **inputs)
    assert (published.verdict, fork.conclusion) == ("failed", "failure")


def test_a_label_accepts_no_results_that_came_later(fork: Fork) -> None:
    """The head is pushed while its run sleeps; another commit is pushed, accepted, and replaced by the first one."""
    fork.rules(agenteval__yaml=STRICT)
    pull = fork_pull_request(fork.github)
    label(OWNER, LATER)(fork.github, pull.number)

    event = fork.run(pull, head=FORK, took=timedelta(days=3))
    fork.publish(event)
    assert fork.conclusion == "action_required"
    assert " published this. The label, which octocat set, is older than the results" in comment_of(pull)

    label(OWNER, LATER + timedelta(days=3))(fork.github, pull.number)
    fork.github.proxy.forget()
    fork.publish(event)
    assert fork.conclusion == "success"

    # No label counts if the end of the run is unknown.
    fork.github.actions.job(event["workflow_run"]["id"], "still at work")
    fork.github.proxy.forget()
    fork.publish(event)
    assert fork.conclusion == "action_required"
    assert "It is unknown when the run ended" in comment_of(pull)


@pytest.mark.parametrize(
    ("repeated", "conclusion"),
    [({"evaluate": HOUR}, "failure"), ({"lint": HOUR}, "success"), ({"lint": HOUR, "evaluate": NOW}, "success")],
    ids=["the job that evaluates", "another job", "another job, and the first one is listed again"],
)
def test_a_repeated_job_without_results_does_not_show_those_of_an_earlier_attempt(
    fork: Fork, repeated: dict[str, timedelta], conclusion: str
) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()
    event = fork.run(pull)
    run = fork.github.actions.runs[-1]
    for name, later in repeated.items():
        fork.github.actions.ended_job(run.id, name, run.created_at + later, timedelta(minutes=1), attempt=2)

    fork.publish(event)

    assert fork.conclusion == conclusion
    assert ("has no artifact agenteval, only an earlier one has" in comment_of(pull)) == (conclusion == "failure")


@pytest.mark.parametrize(
    ("rules", "claim", "verdict", "contradiction"),
    [
        # Both stages have the rules of the base branch, with variables that only the first one has.
        (
            {"judge": {"model": "openai/gpt-4o", "api_key": "${ONLY_THERE}"}, "gate": {"fail_on": ["none"]}},
            GREEN,
            "passed",
            "",
        ),
        # The first stage had other rules, or none that lead to its decision.
        ({"gate": {}}, GREEN | {"rules": LAX}, "failed", "it failed on none, and the base branch fails on failures"),
        (
            {"gate": {}},
            GREEN | {"rules": LAX | {"fail_on": ["failures"], "quarantine": ["wrong"]}},
            "failed",
            "it did not count wrong, which the base branch has not quarantined",
        ),
        ({}, GREEN | {"rules": None}, "failed", "its results do not support its decision"),
    ],
    ids=["variables", "other kinds", "other quarantine", "forged"],
)
def test_both_stages_agree(fork: Fork, rules: Json, claim: Json, verdict: str, contradiction: str) -> None:
    fork.rules(agenteval__yaml=rules)
    pull = fork_pull_request(fork.github)

    [published] = fork.publish(fork.run(pull, claim, FORK))

    assert published.verdict == verdict
    assert contradiction in published.contradiction
    assert bool(published.contradiction) == bool(contradiction)
    assert f"\n\n{DECISIONS[verdict]}" in comment_of(pull)
    assert contradiction in comment_of(pull).replace("\\", "")


def test_templates_are_those_of_the_base_branch(fork: Fork, workspace: Path) -> None:
    fork.rules(
        agenteval__yaml={"templates": {"comment": "own.md.j2", "summary": "summary.md.j2"}},
        own__md__j2='{% extends "comment.md.j2" %}{% block footer %}{% include "part.md.j2" %}{% endblock %}',
        part__md__j2="A part of our own.\n",
        summary__md__j2="### {{ report.heading.text }} in our own words\n",
    )
    pull = fork_pull_request(fork.github)
    step = fork.step(workspace, fork.run(pull, None, FORK))

    assert step.status == 0, step.log
    assert "A part of our own." in comment_of(pull)
    heading, _, rest = step.summary.partition("\n")
    assert heading.endswith(" in our own words")
    assert rest.strip().startswith("⚠️ A job of a fork made these results, and its author")


def test_paths_in_results_lead_to_no_other_file(fork: Fork) -> None:
    fork.place = "../../../../etc"
    pull = fork_pull_request(fork.github)

    [published] = fork.publish(fork.run(pull, None, FORK))

    assert published.verdict == "failed"
    assert [request.route for request in fork.github.proxy.called("GET", "/contents/")] == [
        f"/repos/{REPOSITORY}/contents/agenteval.yaml",
        f"/repos/{REPOSITORY}/contents/agenteval.yml",
    ]


def test_each_pull_request_with_the_head_gets_its_comment(fork: Fork) -> None:
    pull = fork_pull_request(fork.github)
    repository = fork.github.emulator.api().get_repo(REPOSITORY)
    branch = f"release-{pull.number}"
    repository.create_git_ref(f"refs/heads/{branch}", pull.base.sha)
    stranger = fork.github.emulator.api(STRANGER_TOKEN).get_repo(REPOSITORY)
    other = stranger.create_pull(base=branch, head=f"{STRANGER}:{pull.head.ref}", title="backport", body="")

    published = fork.publish(fork.run(pull, None, FORK))

    assert [found.verdict for found in published] == ["failed", "failed"]
    assert DECISIONS["failed"] in comment_of(pull)
    assert DECISIONS["failed"] in comment_of(other)
    assert fork.conclusion == "failure"

    before = comment_of(pull)
    single = fork.publish(first_stage(fork.github, pull, fork.artifact(pull, ref=f"refs/pull/{other.number}/merge")))
    assert [found.comment_url for found in single if found.comment_url] == [
        next(iter(other.get_issue_comments())).html_url
    ]
    assert comment_of(pull) == before


def test_a_fork_cannot_choose_the_rules_of_the_check_run(fork: Fork) -> None:
    """A second pull request of the same commit goes to a branch with weaker rules, and the results name it."""
    fork.rules(agenteval__yaml={"gate": {"fail_on": ["failures"]}})
    pull = fork_pull_request(fork.github)
    repository = fork.github.emulator.api().get_repo(REPOSITORY)
    branch = f"sandbox-{pull.number}"
    repository.create_git_ref(f"refs/heads/{branch}", repository.get_branch("main").commit.sha)
    path = f"{fork.place}/agenteval.yaml"
    weak = yaml.safe_dump({"gate": {"fail_on": ["none"]}})
    strict = repository.get_contents(path, branch)
    assert not isinstance(strict, list)
    repository.update_file(path, "Weaker", weak, strict.sha, branch=branch)
    stranger = fork.github.emulator.api(STRANGER_TOKEN).get_repo(REPOSITORY)
    other = stranger.create_pull(base=branch, head=f"{STRANGER}:{pull.head.ref}", title="sandbox", body="")
    label(OWNER, LATER)(fork.github, other.number)

    published = fork.publish(
        first_stage(fork.github, pull, fork.artifact(pull, GREEN, ref=f"refs/pull/{other.number}/merge"))
    )

    assert fork.conclusion == "failure"
    assert DECISIONS["passed"] in comment_of(other)
    assert list(pull.get_issue_comments()) == []
    assert [found.verdict for found in published] == ["failed", "passed"]


def test_a_run_names_only_pull_requests_with_its_head(fork: Fork) -> None:
    victim, pull = fork.github.emulator.pull_request(), fork_pull_request(fork.github)

    fork.publish(first_stage(fork.github, pull, fork.artifact(pull, ref=f"refs/pull/{victim.number}/merge")))

    assert list(victim.get_issue_comments()) == []
    assert DECISIONS["failed"] in comment_of(pull)
    assert pull.head.repo.full_name == FORK


FIRST, SECOND = ".github/workflows/support.yml", ".github/workflows/search.yml"


def test_no_first_workflow_replaces_the_verdict_of_another(fork: Fork) -> None:
    """Two first workflows, one second stage: a later green one hides no red one, until that is green too."""
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()

    fork.publish(fork.run(pull, None, workflow=FIRST))
    fork.publish(fork.run(pull, workflow=SECOND))

    assert fork.conclusions(pull) == ["failure", "failure"]
    shown = json.loads(fork.github.proxy.called("PATCH", "/check-runs/")[-1].body)["output"]
    assert shown["title"].endswith(" · another evaluation of this commit decides")
    assert "and it decides: [failure](" in shown["summary"]
    body = comment_of(pull)
    assert body.count("<!-- agenteval:section") == 2
    assert "publish · support.yml" in body
    assert "publish · search.yml" in body
    assert "1 of 2 agents did not pass" in body

    # The first workflow ran again on the same commit.
    fork.publish(fork.run(pull, workflow=FIRST))

    assert fork.conclusions(pull) == ["failure", "success", "success"]
    shown = json.loads(fork.github.proxy.called("PATCH", "/check-runs/")[-1].body)["output"]
    assert "another evaluation" not in f"{shown}".lower()
    assert comment_of(pull).count("<!-- agenteval:section") == 2


def test_a_late_publication_of_an_older_run_does_not_count(fork: Fork) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()
    older = fork.run(pull)
    newer = fork.run(pull, None)

    fork.publish(newer)
    fork.publish(older)

    assert fork.conclusions(pull) == ["failure", "failure"]


def test_a_fork_adds_a_workflow_of_the_same_name(fork: Fork) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork_pull_request(fork.github)
    added = ".github/workflows/@octocat <img src=x> `|`.yml"

    fork.publish(fork.run(pull, None, FORK))
    assert fork.conclusions(pull) == ["failure"]
    fork.publish(fork.run(pull, head=FORK, workflow=added))

    assert fork.conclusions(pull) == ["failure", "failure"]
    body = comment_of(pull)
    assert body.count("<!-- agenteval:section") == 2
    assert "<img" not in body
    assert "@octocat" not in body


def test_a_fork_with_two_green_workflows_waits_for_the_label(fork: Fork) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork_pull_request(fork.github)
    events = [fork.run(pull, head=FORK, workflow=path) for path in (FIRST, SECOND)]
    for event in events:
        fork.publish(event)
    assert fork.conclusions(pull) == ["action_required", "action_required"]

    label(OWNER, LATER)(fork.github, pull.number)
    fork.publish(events[0])
    assert fork.conclusions(pull)[-1] == "action_required"
    fork.publish(events[1])

    assert fork.conclusions(pull) == ["action_required", "action_required", "success", "success"]


def test_the_check_run_is_not_green_if_the_others_cannot_be_listed(fork: Fork) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()
    event = fork.run(pull)
    fork.github.proxy.fail("GET", "/check-runs", times=10, status=403, body={"message": "Forbidden"})

    [published] = fork.publish(event)

    assert "GitHub answered 403 (Forbidden)" in "".join(published.problems)
    assert fork.conclusion == "action_required"


def test_a_locked_conversation_stops_no_other_comment(fork: Fork, workspace: Path) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()
    repository = fork.github.emulator.api().get_repo(REPOSITORY)
    branch = f"stable-{pull.number}"
    repository.create_git_ref(f"refs/heads/{branch}", pull.base.sha)
    other = repository.create_pull(base=branch, head=pull.head.ref, title="backport", body="")
    locked = min(pull, other, key=lambda each: each.number)
    message = {"message": "Unable to create comment because issue is locked."}
    fork.github.proxy.fail("POST", f"/issues/{locked.number}/comments", times=10, status=403, body=message)
    step = fork.step(workspace, fork.run(pull))

    assert step.status == 3, step.log
    assert "The conversation is locked" in step.log
    assert "The conversation is locked" in step.summary
    assert "The check passes" in step.summary
    assert step.outputs["verdict"] == "passed"
    comments = [len(list(each.get_issue_comments())) for each in (pull, other)]
    assert sorted(comments) == [0, 1]
    assert fork.conclusion == "success"


@pytest.mark.parametrize(
    ("refused", "status", "left"),
    [
        # What remains: the conclusion of the check run, and the number of comments.
        (("POST", "/comments"), 403, ("success", 0)),
        (("POST", "/check-runs"), 404, (None, 1)),
        (("PATCH", "/check-runs/"), 422, (None, 1)),
        (("GET", "/artifacts"), 403, (None, 0)),
    ],
    ids=["comment", "start of the check run", "end of the check run", "artifacts"],
)
def test_what_github_refuses_is_said_and_the_rest_is_done(
    fork: Fork, workspace: Path, refused: tuple[str, str], status: int, left: tuple[str | None, int]
) -> None:
    fork.rules(agenteval__yaml=STRICT)
    pull = fork.github.emulator.pull_request()
    event = fork.run(pull)
    fork.github.proxy.fail(*refused, times=100, status=status, body={"message": "Refused"})

    step = fork.step(workspace, event)

    assert step.status == 3, step.log
    assert f"GitHub answered {status} (Refused)" in step.log
    assert "Traceback" not in step.log
    assert "Refused" in step.summary
    conclusion, comments = left
    assert len(list(pull.get_issue_comments())) == comments
    repository = fork.github.emulator.api().get_repo(REPOSITORY)
    found = repository.get_commit(pull.head.sha).get_check_runs(filter="all")
    assert [run.conclusion for run in found if run.conclusion] == ([conclusion] if conclusion else [])


def test_a_cancelled_publication_cancels_its_check_run(fork: Fork, workspace: Path) -> None:
    pull = fork.github.emulator.pull_request()
    variables = process_environment(workspace, *fork.stage(fork.run(pull)))
    fork.github.proxy.fail("GET", "/commits/.*/check-runs", delay_s=5, status=500)

    with subprocess.Popen([str(AGENTEVAL), "action"], env=variables, cwd=workspace, stdout=subprocess.PIPE) as job:
        assert eventually(lambda: bool(fork.github.proxy.called("GET", "/commits/.*/check-runs")))
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=PATIENCE_S)

    assert job.returncode == 128 + signal.SIGTERM
    [check] = list(fork.github.emulator.api().get_repo(REPOSITORY).get_commit(pull.head.sha).get_check_runs())
    assert (check.status, check.conclusion) == ("completed", "cancelled")
    assert list(pull.get_issue_comments()) == []
