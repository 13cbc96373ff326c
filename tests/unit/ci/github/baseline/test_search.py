"""What needs no GitHub in the search for a baseline: which runs count, the states of a branch, the sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from github import Github
from hypothesis import given
from hypothesis import strategies as st

from agenteval.github.baseline import Found, Start, describe
from agenteval.github.history import first_parents
from agenteval.github.workflow_runs import TRUSTED_EVENTS, Workflow, artifacts_named
from agenteval.results.model import Results

REPOSITORY = "acme/widgets"
_SHA = "a" * 40
_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Api:
    """Answers as PyGithub's requester does: the first route that is the end of the path."""

    routes: dict[str, Any]
    asked: list[str] = field(default_factory=list)

    @property
    def requester(self) -> Api:
        return self

    def requestJsonAndCheck(self, verb: str, url: str, parameters: dict[str, str]) -> tuple[dict[str, str], Any]:  # noqa: N802
        self.asked.append(url)
        answer = self.routes[url.rpartition("/")[2]]
        return {}, json.loads(json.dumps(answer(parameters) if callable(answer) else answer, default=str))

    def as_github(self) -> Github:
        return cast("Github", self)


def run(**changes: Any) -> dict[str, Any]:
    place = {"full_name": REPOSITORY}
    usual = {
        "id": 1,
        "event": "push",
        "path": ".github/workflows/agenteval.yml",
        "head_branch": "main",
        "head_sha": _SHA,
        "created_at": "2026-03-01T12:00:00Z",
        "repository": place,
        "head_repository": place,
    }
    return usual | changes


def trusted(*runs: dict[str, Any], file: str = "agenteval.yml") -> list[int]:
    api = Api({"runs": {"total_count": len(runs), "workflow_runs": list(runs)}})
    workflow = Workflow(api.as_github(), REPOSITORY, file, "main")
    listed, more = workflow.trusted_runs("push", 1)
    # Servers can ignore filters, so both lists are checked.
    assert [found.id for found in workflow.runs_of(_SHA)] == [found.id for found in listed]
    assert not more
    return [found.id for found in listed]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"event": "schedule"},
        {"event": "workflow_dispatch"},
        {"event": "merge_group", "head_branch": "gh-readonly-queue/main/pr-1-abc"},
        {"path": ".github/workflows/agenteval.yml@refs/heads/main"},
        {"head_repository": {"full_name": "Acme/Widgets"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("file", ["agenteval.yml", ".github/workflows/agenteval.yml"])
def test_runs_that_count(changes: dict[str, Any], file: str) -> None:
    assert trusted(run(**changes), file=file) == [1]


@pytest.mark.parametrize(
    "changes",
    [
        {"event": "pull_request"},
        {"event": "pull_request_target"},
        {"event": "workflow_run"},
        {"event": "issue_comment"},
        {"event": ""},
        {"head_repository": {"full_name": "mallory/widgets"}},
        {"head_repository": None},
        {"repository": {"full_name": "mallory/widgets"}},
        {"path": ".github/workflows/other.yml"},
        {"path": "acme/shared/.github/workflows/agenteval.yml@main"},
        {"head_branch": "feature"},
        {"head_branch": None},
        {"event": "merge_group"},
        {"event": "merge_group", "head_branch": "gh-readonly-queue/mainline/pr-1"},
        {"event": "push", "head_branch": "gh-readonly-queue/main/pr-1-abc"},
    ],
    ids=str,
)
def test_runs_that_do_not_count(changes: dict[str, Any]) -> None:
    assert trusted(run(**changes)) == []


def test_runs_are_newest_first_and_listed_once() -> None:
    old = run(id=5, created_at="2026-03-01T11:00:00Z")

    assert trusted(old, run(id=2), run(id=3), run(id=3)) == [3, 2, 5]


def test_artifacts_of_other_names_are_left_out_where_the_server_does_not() -> None:
    items = [
        {"id": number, "name": name, "expired": False, "size_in_bytes": 1}
        for number, name in ((1, "agenteval"), (2, "other"), (3, "agenteval"))
    ]
    api = Api({"artifacts": {"total_count": 3, "artifacts": items}})

    assert [found.id for found in artifacts_named(api.as_github(), REPOSITORY, 7, "agenteval")] == [3, 1]


def _served(history: list[tuple[str, list[str]]]) -> Api:
    """Commits as GitHub lists them."""

    def page(query: dict[str, str]) -> list[dict[str, Any]]:
        some = history[: int(query["per_page"])]
        return [{"sha": sha, "parents": [{"sha": parent} for parent in parents]} for sha, parents in some]

    return Api({"commits": page})


@given(st.lists(st.integers(0, 6), min_size=1, max_size=14))
def test_merged_in_commits_are_no_states(sides: list[int]) -> None:
    history: list[tuple[str, list[str]]] = []
    for number, side in enumerate(sides):
        branch = [f"{number}.{place}" for place in range(side)]
        history.append((f"{number}", [f"{number + 1}", *branch[:1]]))
        history += [(sha, [after]) for sha, after in zip(branch, [*branch[1:], "start"], strict=False)]

    assert first_parents(_served(history).as_github(), REPOSITORY, "0") == tuple(f"{n}" for n in range(len(sides)))


def _found(**changes: Any) -> Found:
    usual = Found(cast("Results", None), "0123456789" * 4, 77, _NOW, 3, Start("c" * 40, "the merge base"))
    return replace(usual, **changes)


@pytest.mark.parametrize(
    ("changes", "age", "said"),
    [
        ({}, {"days": 2}, "baseline: commit 0123456, 3 commits before the merge base, 2 days old (workflow run 77)"),
        ({"distance": 0}, {"minutes": 119}, "commit 0123456, the merge base, 119 minutes old"),
        ({"start": Start("a", "commit abcdef0")}, {"days": 3000}, "3 commits before commit abcdef0, 3,000 days old"),
        ({"between": ("a" * 40, "b" * 40)}, {}, "(workflow run 77); the comparison includes aaaaaaa, bbbbbbb"),
        ({"between": ("a" * 40,) * 1205}, {}, "includes aaaaaaa, aaaaaaa, aaaaaaa, aaaaaaa, aaaaaaa and 1,200 more"),
    ],
)
def test_the_sentence(changes: dict[str, Any], age: dict[str, int], said: str) -> None:
    assert said in describe(_found(**changes), _NOW + timedelta(**age))


def test_queries_stay_small() -> None:
    asked: list[dict[str, list[str]]] = []

    def runs(query: dict[str, str]) -> dict[str, Any]:
        asked.append(parse_qs(urlsplit("?" + "&".join(f"{k}={v}" for k, v in query.items())).query))
        return {"total_count": 0, "workflow_runs": []}

    workflow = Workflow(Api({"runs": runs}).as_github(), REPOSITORY, "agenteval.yml", "main")
    workflow.runs_of(_SHA)
    for event in TRUSTED_EVENTS:
        workflow.trusted_runs(event, 1)

    assert [{key for key in query if key not in {"per_page", "page"}} for query in asked] == [
        {"head_sha", "exclude_pull_requests"},
        *(
            {"event", "exclude_pull_requests", *(() if event == "merge_group" else ("branch",))}
            for event in TRUSTED_EVENTS
        ),
    ]
