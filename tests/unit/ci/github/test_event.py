"""The permissions of each event. The payloads have GitHub's structure, reduced to relevant and misleading keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import ConfigError
from agenteval.github.event import EventRights, plan, read_event

REPOSITORY = "acme/widgets"
MERGE = "1" * 40
HEAD = "2" * 40
BASE = "3" * 40


def environment(name: str, **more: str) -> dict[str, str]:
    return {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SHA": MERGE,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_RUN_ID": "1658821493",
        "GITHUB_ACTOR": "octocat",
        "GITHUB_BASE_REF": "",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/agenteval.yml@refs/heads/main",
    } | more


def pull_request(head: dict[str, Any] | None, sender: str = "octocat") -> dict[str, Any]:
    return {
        "action": "synchronize",
        "number": 7,
        "pull_request": {
            "number": 7,
            "state": "open",
            "user": {"login": sender, "type": "User"},
            "head": {"ref": "feature", "sha": HEAD, "repo": head},
            "base": {"ref": "main", "sha": BASE, "repo": {"full_name": REPOSITORY, "fork": False}},
        },
        "repository": {"full_name": REPOSITORY, "fork": False, "default_branch": "main"},
        "sender": {"login": sender, "type": "User"},
    }


OWN = {"full_name": REPOSITORY, "fork": False}
FORK = {"full_name": "mallory/widgets", "fork": True}
ON_PULL_REQUEST = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "feature"}

MERGE_GROUP = {
    "action": "checks_requested",
    "merge_group": {
        "head_sha": MERGE,
        "head_ref": f"refs/heads/gh-readonly-queue/main/pr-104-{BASE}",
        "base_sha": BASE,
        "base_ref": "refs/heads/main",
    },
}
WORKFLOW_RUN = {
    "action": "completed",
    "workflow_run": {
        "id": 30433642,
        "event": "pull_request",
        "head_branch": "main",
        "head_sha": HEAD,
        "head_repository": FORK,
        "pull_requests": [{"number": 7}],
    },
}


ON_MAIN = {"may_check": True}


def of_pull_request(**changes: Any) -> EventRights:
    unchanged: dict[str, Any] = {
        "event": "pull_request",
        "repository": REPOSITORY,
        "commit": HEAD,
        "github_sha": MERGE,
        "ref": "refs/pull/7/merge",
        "is_proposed": True,
        "base_commit": "3" * 40,
        "base_ref": "main",
        "head_ref": "feature",
        "workflow": "agenteval.yml",
        "workflow_run_id": "1658821493",
        "baseline_branch": "main",
        "default_branch": "main",
        "pull_request": 7,
        "may_comment": False,
    }
    changes |= {"may_check": changes.get("may_comment", False)}
    return EventRights(**unchanged | changes)


def without_pull_request(event: str, **changes: Any) -> EventRights:
    unchanged: dict[str, Any] = {
        "event": event,
        "repository": REPOSITORY,
        "commit": MERGE,
        "github_sha": MERGE,
        "ref": "refs/heads/main",
        "baseline_branch": "main",
        "workflow": "agenteval.yml",
        "workflow_run_id": "1658821493",
        "reason": f"{event} events have no pull request",
    }
    return EventRights(**unchanged | changes)


@pytest.mark.parametrize(
    ("variables", "payload", "expected"),
    [
        pytest.param({}, pull_request(OWN), of_pull_request(may_comment=True), id="own branch"),
        pytest.param(
            {},
            pull_request({"full_name": "Acme/Widgets", "fork": True}),
            of_pull_request(may_comment=True),
            id="own branch of a repository that is a fork itself",
        ),
        pytest.param(
            {},
            pull_request(FORK, sender="mallory"),
            of_pull_request(reason="a pull request from a fork has a read-only token", head_ref=None),
            id="fork",
        ),
        pytest.param(
            {},
            pull_request(None),
            of_pull_request(reason="a pull request from a fork has a read-only token", head_ref=None),
            id="deleted fork",
        ),
        pytest.param(
            {"GITHUB_ACTOR": "dependabot[bot]"},
            pull_request(OWN, sender="dependabot[bot]"),
            of_pull_request(reason="a pull request that Dependabot opened or updated has a read-only token"),
            id="Dependabot",
        ),
        pytest.param(
            {"GITHUB_ACTOR": ""},
            pull_request(OWN, sender="dependabot[bot]"),
            of_pull_request(reason="a pull request that Dependabot opened or updated has a read-only token"),
            id="Dependabot, known by the payload",
        ),
        pytest.param(
            {"GITHUB_ACTOR": "octocat"},
            pull_request(OWN, sender="dependabot[bot]"),
            of_pull_request(may_comment=True),
            id="a person pushed to Dependabot's branch",
        ),
        pytest.param(
            {"GITHUB_BASE_REF": ""}, pull_request(OWN), of_pull_request(may_comment=True), id="base from payload"
        ),
    ],
)
def test_pull_request(variables: dict[str, str], payload: dict[str, Any], expected: EventRights) -> None:
    assert plan(environment("pull_request", **ON_PULL_REQUEST | variables), payload) == expected


@pytest.mark.parametrize(
    ("event", "payload", "changes"),
    [
        ("push", {"before": BASE, "after": MERGE, "deleted": False}, ON_MAIN | {"before": BASE}),
        ("push", {"before": BASE, "after": MERGE, "forced": True}, ON_MAIN),
        ("push", {"before": "0" * 40, "after": MERGE, "created": True}, ON_MAIN),
        ("schedule", {"schedule": "30 5 * * *"}, ON_MAIN),
        ("workflow_dispatch", {"inputs": None, "ref": "refs/heads/main"}, ON_MAIN),
        ("issue_comment", {"issue": {"number": 7, "pull_request": {}}, "action": "created"}, {}),
        (
            "merge_group",
            MERGE_GROUP,
            {
                "is_proposed": True,
                "base_ref": "main",
                "before": BASE,
                "may_check": True,
                "reason": "merge_group events have no single pull request",
            },
        ),
        (
            "workflow_run",
            WORKFLOW_RUN,
            {
                "first_stage": 30433642,
                "reason": "workflow_run events do not name their pull request reliably",
            },
        ),
    ],
)
def test_events_without_a_pull_request(event: str, payload: dict[str, Any], changes: dict[str, Any]) -> None:
    assert plan(environment(event), payload) == without_pull_request(event, **changes)


@pytest.mark.parametrize("head", [OWN, FORK])
def test_pull_request_target_is_refused(head: dict[str, Any]) -> None:
    refused = plan(environment("pull_request_target", GITHUB_BASE_REF="main"), pull_request(head))

    assert refused.refused is not None
    assert "secrets" in refused.refused
    assert "use the pull_request event" in refused.refused
    assert not refused.may_comment
    assert (refused.pull_request, refused.base_ref) == (7, "main")
    # What such a job checks out by default is the base branch.
    assert refused.commit == refused.github_sha == MERGE


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/heads/feature", "refs/tags/v1", ""])
@pytest.mark.parametrize("event", ["push", "schedule", "release", "issue_comment", "check_run"])
def test_the_baseline_is_of_the_default_branch_whatever_the_event(event: str, ref: str) -> None:
    found = plan(environment(event, GITHUB_REF=ref), {"repository": {"default_branch": "trunk"}})

    assert found.baseline_branch == "trunk"


@pytest.mark.parametrize("event", ["pull_request_review", "pull_request_review_comment"])
def test_a_review_names_the_base_branch_of_its_pull_request(event: str) -> None:
    payload = pull_request(FORK)
    payload["pull_request"]["base"]["ref"] = "release"
    planned = plan(environment(event, GITHUB_REF="refs/pull/7/merge"), payload)
    assert (planned.base_ref, planned.baseline_branch) == ("release", "release")
    assert (planned.may_comment, planned.may_check) == (False, False)


def test_an_event_that_names_no_default_branch_has_the_branch_of_its_run() -> None:
    assert plan(environment("schedule", GITHUB_REF="refs/heads/next"), {}).baseline_branch == "next"
    assert plan(environment("release", GITHUB_REF="refs/tags/v1"), {}).baseline_branch is None


_NAMELESS = "the event does not name its pull request"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, _NAMELESS),
        ({"pull_request": {"number": "7"}}, _NAMELESS),
        ({"pull_request": {"number": -7}}, _NAMELESS),
        ({"pull_request": {"number": 7}}, "a pull request from a fork has a read-only token"),
        (
            {"number": 7, "pull_request": {"head": {"sha": 1, "repo": {"full_name": 2}}}},
            "a pull request from a fork has a read-only token",
        ),
    ],
)
def test_a_damaged_payload_allows_nothing(payload: dict[str, Any], reason: str) -> None:
    damaged = plan(environment("pull_request"), payload)

    assert (damaged.may_comment, damaged.reason) == (False, reason)
    assert damaged.commit == MERGE


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"{", "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b"[]", "must contain a JSON object, not list"),
    ],
)
def test_an_unusable_event_file_is_a_clear_error(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "event.json"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        read_event({"GITHUB_EVENT_PATH": str(file)})

    assert str(caught.value).startswith(f"{file}: the event file named by GITHUB_EVENT_PATH {problem}")


@pytest.mark.parametrize(("action", "label"), [("labeled", "agenteval: accept a"), ("unlabeled", None), (None, None)])
def test_only_a_label_that_was_just_set_is_new(action: str | None, label: str | None) -> None:
    event = pull_request(OWN) | {"action": action, "label": {"name": "agenteval: accept a"}}
    assert plan(environment("pull_request", **ON_PULL_REQUEST), event).new_label == label


def test_without_a_repository_nothing_is_commented_on() -> None:
    payload = pull_request(OWN) | {"repository": None}

    nowhere = plan({"GITHUB_EVENT_NAME": "pull_request"}, payload)

    assert (nowhere.may_comment, nowhere.reason) == (False, "the repository is unknown")
