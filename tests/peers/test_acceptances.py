"""What people accept in a pull request, against an independent emulation of GitHub."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from tests.peers.github_emulator import OWNER, REPOSITORY, STRANGER
from tests.peers.github_service import GithubService
from tests.peers.pull_request import NUMBER, PullRequest
from tests.support import open_folder, results_in

from agenteval.github.pull_request import RemoteAcceptances
from agenteval.run.context import Given, GivenAcceptance

pytestmark = pytest.mark.peer

HEAD, EARLIER = "a" * 40, "b" * 40
PUSHED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEFORE, AFTER = PUSHED - timedelta(minutes=1), PUSHED + timedelta(minutes=1)
LABEL = "agenteval: accept c0"
Make = Callable[[GithubService], None]
LABELLED = GivenAcceptance("c0", OWNER)


def given(github: GithubService, **changes: Any) -> Given:
    """What is accepted for the head, for which a run began when it was pushed."""
    for at, commit in ((BEFORE - timedelta(hours=1), EARLIER), (PUSHED, HEAD)):
        github.actions.run(REPOSITORY, commit, branch="feature", event="pull_request", created_at=at)
    asked = {"workflow": "agenteval.yml", "pull_request": NUMBER, "commit": HEAD, **changes}
    return RemoteAcceptances(github.client, REPOSITORY, **asked).read()


def labelled(*events: tuple[str, str, datetime], name: str = LABEL) -> Make:
    def make(github: GithubService) -> None:
        for kind, by, at in events:
            github.labels.event(NUMBER, kind, name, by, at)

    return make


PROVE = "agenteval: prove"


@pytest.mark.parametrize(
    ("make", "by", "said"),
    [
        (labelled(("labeled", OWNER, AFTER), name="Agenteval: Prove"), OWNER, ""),
        (labelled(("labeled", OWNER, AFTER), ("unlabeled", STRANGER, AFTER), name=PROVE), "", ""),
        (labelled(("labeled", OWNER, AFTER), name=f"{PROVE} it"), "", ""),
        (labelled(("labeled", STRANGER, AFTER), name=PROVE), "", "does not count: this needs write access"),
        (labelled(("labeled", OWNER, BEFORE), name=PROVE), "", "is older than this commit and does not count"),
    ],
)
def test_who_may_ask_for_a_proof(github: GithubService, make: Make, by: str, said: str) -> None:
    make(github)
    found = given(github)
    assert (found.entries, found.asked_by) == ((), by)
    assert (said in " ".join(found.warnings)) if said else not found.warnings


def test_a_commit_that_was_the_head_before_needs_a_new_label(github: GithubService) -> None:
    labelled(("labeled", OWNER, AFTER))(github)
    assert list(given(github).entries) == [LABELLED]
    again = AFTER + timedelta(minutes=1)
    github.actions.run(REPOSITORY, HEAD, branch="feature", event="pull_request", created_at=again)
    assert list(given(github).entries) == []


def test_what_is_too_long_to_read_accepts_nothing(github: GithubService) -> None:
    """The newest items are the last ones, and withdraw what the first ones say."""
    labelled(("labeled", OWNER, AFTER))(github)
    for number in range(3_000):
        github.labels.event(NUMBER, "labeled", f"label {number}", STRANGER, AFTER)
    labelled(("unlabeled", OWNER, AFTER))(github)
    found = given(github)
    assert found.entries == ()
    assert "lists more than 3,000 items" in found.warnings[0]


def test_strangers_cannot_fill_the_report(github: GithubService) -> None:
    for number in range(30):
        github.labels.event(
            NUMBER, "labeled", f"agenteval: accept {'x' * 10_000} {number}", f"stranger-{number}", AFTER
        )
    found = given(github)
    assert (found.entries, len(found.warnings)) == ((), 5)
    assert max(map(len, found.warnings)) <= 500
    assert len(github.proxy.called("GET", "/permission")) <= 20


@pytest.fixture
def pull(github: GithubService) -> Iterator[PullRequest]:
    with open_folder() as home:
        found = PullRequest(github, home)
        found.create()
        yield found


def change_suite(pull: PullRequest, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Push a commit with another suite, whose run is uploaded."""
    file = pull.workspace / "agent.yaml"
    suite = yaml.safe_load(file.read_text(encoding="utf-8"))
    change(suite["test_cases"])
    pull.push(agent_yaml=yaml.safe_dump(suite))


def later(pull: PullRequest) -> datetime:
    return pull.github.actions.runs[-1].created_at + timedelta(minutes=10)


def test_a_label_turns_a_red_run_green_until_it_is_removed(pull: PullRequest) -> None:
    change_suite(pull, lambda cases: cases.pop(0))
    assert pull.attempt().status == 1
    pull.github.labels.event(NUMBER, "labeled", "agenteval: accept c00", STRANGER, later(pull))
    refused = pull.run()
    assert refused.status == 1, refused.log
    assert f"{STRANGER} set, does not count" in refused.summary.replace("\u200b", "")
    pull.github.labels.event(NUMBER, "labeled", "agenteval: accept c00", OWNER, later(pull))

    accepted = pull.run()

    assert accepted.status == 0, accepted.log
    (found,) = [item for item in results_in(pull.workspace).run.integrity if item.kind == "removed"]
    assert found.accepted_by is not None
    assert (found.accepted_by.author, found.accepted_by.reason) == (OWNER, "by a label of the pull request")
    assert f"accepted by {OWNER}" in accepted.summary
    pull.github.labels.event(NUMBER, "unlabeled", "agenteval: accept c00", OWNER, later(pull))
    removed = pull.run()
    assert removed.status == 1, removed.log


def test_a_label_of_a_fork_counts_for_its_commit_only(pull: PullRequest) -> None:
    def edit(cases: list[dict[str, Any]]) -> None:
        cases[0].update(input="bye", ground_truth="bye")

    change_suite(pull, edit)
    pull.push_agent(right=True)
    pull.attempt()
    pull.github.labels.event(NUMBER, "labeled", "agenteval: accept c00", OWNER, later(pull))
    accepted = pull.run(head_repository="mallory/widgets")
    assert accepted.status == 0, accepted.log
    (found,) = [item for item in results_in(pull.workspace).run.integrity if item.kind == "edited"]
    assert found.accepted_by is not None
    assert found.accepted_by.author == OWNER
    # The new version decides alone.
    assert [case.name for _, case in results_in(pull.workspace).cases()].count("c00 (edited)") == 0


def test_a_proven_regression_is_accepted_by_labels(pull: PullRequest) -> None:
    agent = (pull.workspace / "agent.py").read_text(encoding="utf-8")
    pull.push(agent_py=agent.replace("if True", 'if request["case"] != "c00"'))
    assert pull.attempt().status == 1
    for name in ("c00", "equality 0.99", "c9*"):
        pull.github.labels.event(NUMBER, "labeled", f"agenteval: accept {name}", OWNER, later(pull))
    refused = pull.run().log
    assert f"the mean of equality is 0.92, and only 0.99 was accepted by {OWNER}" in refused
    assert refused.count("does not count: it is no id or name of a case") == 1
    pull.github.labels.event(NUMBER, "labeled", "agenteval: accept equality 0.92", OWNER, later(pull))

    accepted = pull.attempt()

    assert accepted.status == 0, accepted.log
    assert f"c00 was accepted by {OWNER}: by a label" in accepted.log
    assert f"the mean of equality (1.00 → 0.92) was accepted by {OWNER}: by a label" in accepted.log
