"""What each event allows, by the payloads in GitHub's own documentation (npm ``@octokit/webhooks-examples``).

None of them is of a fork or of Dependabot, so these are derived: one value is changed, and the payload has to fit
GitHub's schema (npm ``@octokit/webhooks-schemas``) where it fitted before. A schedule is no webhook; its payload is
what the runner's documentation says.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from agenteval.github.event import EventRights, plan, read_event

pytestmark = pytest.mark.peer

Payload = dict[str, Any]

_PACKAGES = Path(__file__).parent / "node_modules" / "@octokit"
_RUN_SHA = "1" * 40
_NOTHING = "0" * 40
_FORK = "a pull request from a fork has a read-only token"
_DEPENDABOT = "a pull request that Dependabot opened or updated has a read-only token"


def _examples() -> Iterator[tuple[str, str, Payload]]:
    """Server, event and payload of every example."""
    files = sorted(_PACKAGES.glob("webhooks-examples/*/index.json"))
    if not files:
        raise RuntimeError("The peer tests need the package @octokit/webhooks-examples: run `make peers`.")
    for file in files:
        for event in json.loads(file.read_text(encoding="utf-8")):
            for payload in event["examples"]:
                yield file.parent.name, event["name"], payload


EXAMPLES = list(_examples())


def of(event: str) -> list[Payload]:
    """The payloads of an event."""
    return [payload for _, name, payload in EXAMPLES if name == event]


PULL_REQUESTS = of("pull_request")


def changed(payload: Payload, place: str, value: Any) -> Payload:
    """The payload with another value at a place."""
    copied = copy.deepcopy(payload)
    *path, last = place.split(".")
    inner = copied
    for key in path:
        inner = inner[key]
    assert last in inner, f"{place} is not in GitHub's example"
    inner[last] = value
    return copied


@cache
def _schema(event: str) -> Draft7Validator:
    document = json.loads((_PACKAGES / "webhooks-schemas" / "schema.json").read_text(encoding="utf-8"))
    return Draft7Validator({"definitions": document["definitions"], "$ref": f"#/definitions/{event}_event"})


def planned(event: str, payload: Payload, **variables: str) -> EventRights:
    """The plan with the variables that the runner sets for each event."""
    return plan(
        {
            "GITHUB_EVENT_NAME": event,
            "GITHUB_SHA": _RUN_SHA,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_REPOSITORY": payload["repository"]["full_name"],
            "GITHUB_ACTOR": payload.get("sender", {}).get("login", "octocat"),
            "GITHUB_RUN_ID": "1658821493",
        }
        | variables,
        payload,
    )


def on_pull_request(payload: Payload, event: str = "pull_request", **variables: str) -> EventRights:
    pull = payload["pull_request"]
    known = {
        "GITHUB_REF": f"refs/pull/{pull['number']}/merge",
        "GITHUB_BASE_REF": pull["base"]["ref"],
        "GITHUB_HEAD_REF": pull["head"]["ref"],
    }
    return planned(event, payload, **known | variables)


def test_the_examples_are_those_that_are_meant() -> None:
    here = [name for server, name, _ in EXAMPLES if server == "api.github.com"]

    counted = {name: here.count(name) for name in ("pull_request", "push", "workflow_run", "merge_group")}
    assert counted == {"pull_request": 29, "push": 7, "workflow_run": 5, "merge_group": 2}
    assert len(set(here)) == 58


def test_a_pull_request_of_the_repository_may_be_commented_on() -> None:
    first = on_pull_request(PULL_REQUESTS[0])
    assert (first.repository, first.pull_request, first.commit, first.base_ref) == (
        "Codertocat/Hello-World",
        2,
        "ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        "master",
    )
    for payload in PULL_REQUESTS:
        pull = payload["pull_request"]
        forked = changed(changed(payload, "repository.fork", True), "pull_request.head.repo.fork", True)
        # The payload alone says it all.
        alone = plan({"GITHUB_EVENT_NAME": "pull_request"}, payload)
        for found in (on_pull_request(payload), on_pull_request(forked), alone):
            assert found.repository == payload["repository"]["full_name"]
            assert found.pull_request == pull["number"] == payload["number"]
            assert (found.commit, found.base_ref) == (pull["head"]["sha"], pull["base"]["ref"])
            assert (found.may_comment, found.reason, found.refused) == (True, None, None)
        assert on_pull_request(payload).github_sha == _RUN_SHA


def test_a_fork_and_dependabot_have_a_token_that_only_reads() -> None:
    valid = _schema("pull_request").is_valid
    for payload in PULL_REQUESTS:
        fork = changed(payload, "pull_request.head.repo.full_name", "mallory/Hello-World")
        fork = changed(fork, "pull_request.head.repo.fork", True)
        deleted = changed(payload, "pull_request.head.repo", None)
        opened = changed(payload, "pull_request.user.login", "dependabot[bot]")
        pushed = changed(opened, "sender.login", "dependabot[bot]")
        # Validation takes a second.
        assert payload is not PULL_REQUESTS[0] or (valid(fork) == valid(pushed) == valid(payload))
        for found, reason in (
            (on_pull_request(fork), _FORK),
            (on_pull_request(deleted), _FORK),
            (on_pull_request(pushed, GITHUB_ACTOR="dependabot[bot]"), _DEPENDABOT),
            (on_pull_request(pushed, GITHUB_ACTOR=""), _DEPENDABOT),
        ):
            assert (found.may_comment, found.reason) == (False, reason)
            assert found.repository == payload["repository"]["full_name"]
            assert (found.pull_request, found.commit) == (payload["number"], payload["pull_request"]["head"]["sha"])
        # After a person pushed to Dependabot's branch the token may write.
        assert on_pull_request(opened, GITHUB_ACTOR="octocat").may_comment


def test_with_the_secrets_of_the_target_nothing_is_run() -> None:
    for payload in PULL_REQUESTS:
        found = on_pull_request(payload, event="pull_request_target", GITHUB_REF="refs/heads/master")

        assert found.refused is not None
        assert not found.may_comment
        assert (found.pull_request, found.commit) == (payload["number"], _RUN_SHA)


def assert_no_pull_request(found: EventRights, payload: Payload, commit: str = _RUN_SHA) -> None:
    assert found.repository == payload["repository"]["full_name"]
    assert (found.commit, found.github_sha) == (commit, commit)
    assert (found.pull_request, found.may_comment, found.refused) == (None, False, None)
    assert found.reason


def test_a_push_is_evaluated_at_the_commit_pushed() -> None:
    for payload in of("push"):
        # A deletion runs at the last commit of the default branch.
        is_there = payload["after"] != _NOTHING
        variables = {"GITHUB_SHA": payload["after"], "GITHUB_REF": payload["ref"]} if is_there else {}

        found = planned("push", payload, **variables)

        assert_no_pull_request(found, payload, variables.get("GITHUB_SHA", _RUN_SHA))
        assert found.ref == (payload["ref"] if is_there else "refs/heads/main")
        assert found.base_ref is None


def test_a_merge_group_is_measured_against_its_branch() -> None:
    for payload in of("merge_group"):
        group = payload["merge_group"]

        found = planned("merge_group", payload, GITHUB_SHA=group["head_sha"], GITHUB_REF=group["head_ref"])

        assert_no_pull_request(found, payload, group["head_sha"])
        assert found.base_ref == "main"
        alone = plan({"GITHUB_EVENT_NAME": "merge_group"}, payload)
        assert (alone.repository, alone.commit, alone.base_ref) == ("octo-org/octo-repo", group["head_sha"], "main")


def test_a_second_stage_does_not_take_the_first_ones_word() -> None:
    for payload in of("workflow_run"):
        found = planned("workflow_run", payload)

        # ``head_sha`` may be a fork's; what runs is the default branch.
        assert payload["workflow_run"]["head_sha"] != found.commit
        assert_no_pull_request(found, payload)


def test_runs_by_hand_and_by_schedule_are_evaluated_where_they_were_started() -> None:
    for payload in of("workflow_dispatch"):
        found = planned("workflow_dispatch", payload, GITHUB_REF=payload["ref"])

        assert_no_pull_request(found, payload)
        assert found.ref == payload["ref"]
        kept = {key: payload[key] for key in ("repository", "workflow")}
        assert_no_pull_request(planned("schedule", kept | {"schedule": "0 5 * * *"}), payload)
    variables = {"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": _RUN_SHA, "GITHUB_REPOSITORY": "acme/widgets"}
    bare = plan(variables, {"schedule": "0 5 * * *"})
    assert (bare.repository, bare.commit, bare.may_comment) == ("acme/widgets", _RUN_SHA, False)


def test_no_event_of_github_raises_or_may_comment_but_pull_requests(tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    may = set()
    for _, event, payload in EXAMPLES:
        file.write_text(json.dumps(payload), encoding="utf-8")
        variables: Mapping[str, str] = {"GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": str(file)}
        found = plan(variables, read_event(variables))
        assert found.may_comment == (found.reason is None)
        if found.may_comment:
            may.add(event)

    assert may == {"pull_request"}
