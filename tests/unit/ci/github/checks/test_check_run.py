"""What is sent for a check run; and that a server which loses answers gets no annotation twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace as Fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.openapi import Description, Request
from tests.support import listening
from tests.unit.ci.github.test_runner import parsed_command

from agenteval.github import pygithub
from agenteval.github.check_run import (
    Body,
    CheckRun,
    abandonment,
    as_commands,
    corrections,
    creation,
    decided,
    read,
    undecided,
    updates,
)
from agenteval.github.client import GitHubClient, GithubError
from agenteval.report.overview import Annotation

COMMIT = "c" * 40


def listed(count: int, level: Any = "failure") -> list[Annotation]:
    return [
        Annotation("agent.yaml", number + 1, level, f"Case {number}", f"Failed {number}") for number in range(count)
    ]


def finished(count: int = 0, summary: str = "1 of 2 passed", text: str = "Details") -> list[Body]:
    return updates("failure", "1 case broke", summary, text, listed(count))


def test_without_annotations_one_request_completes_it() -> None:
    assert finished() == [
        {
            "status": "completed",
            "conclusion": "failure",
            "output": {"title": "1 case broke", "summary": "1 of 2 passed", "text": "Details"},
        }
    ]


def test_annotations_go_ahead_of_the_completion() -> None:
    addition, completion = finished(1)

    assert addition == {
        "output": {
            "title": "1 case broke",
            "summary": "1 of 2 passed",
            "annotations": [
                {
                    "path": "agent.yaml",
                    "start_line": 1,
                    "end_line": 1,
                    "annotation_level": "failure",
                    "title": "Case 0",
                    "message": "Failed 0",
                }
            ],
        }
    }
    assert [completion] == finished()


@pytest.mark.parametrize("conclusion", ["success", "failure", "neutral", "cancelled", "skipped", "timed_out"])
def test_github_allows_every_request(conclusion: Any) -> None:
    described = Description.load()
    check = "https://api.github.com/repos/acme/widgets/check-runs"
    bodies = updates(conclusion, "Title", "Summary", "", listed(51, "warning"))
    requests = [
        Request("POST", check, json.dumps(creation(COMMIT, "agenteval", "", "1", "Running"))),
        *(
            Request("PATCH", f"{check}/7", json.dumps(body))
            for body in [*bodies, abandonment("The job was cancelled")]
        ),
    ]

    assert [problem for request in requests for problem in described.violations(request)] == []


@pytest.mark.parametrize(
    ("others", "shown", "corrected"),
    [
        ([(1, "9/1/b/success", 1), (2, "3/1/b/failure", 1)], "neutral", {1: "neutral"}),
        ([(1, "9/1/b/failure", 1), (2, "3/1/b/success", 1), (3, "9/2/b", 1)], "failure", {7: "failure"}),
        ([(1, "5/2/b/success", 1), (2, "5/1/b/failure", 1)], "neutral", {1: "neutral"}),
        ([(1, "5/1/b/failure", 2), (2, "by someone", 1), (3, "5/1/c", 1)], "neutral", {}),
    ],
)
def test_the_worst_last_verdict_of_an_app_is_shown(others: list[Any], shown: str, corrected: dict[int, str]) -> None:
    title = "Title · another evaluation of this commit decides"
    completion = updates("neutral", "Title", "Summary", "", [])[0]
    found = []
    for id_, name, app in [*others, (7, "5/1/a/neutral", 1)]:
        texts = Fields(title=title, summary="Summary", text=None)
        status, conclusion = "completed" if name.count("/") == 3 else "in_progress", name.rpartition("/")[2]
        run = Fields(id=id_, external_id=name, status=status, conclusion=conclusion, app=Fields(id=app), output=texts)
        run.details_url = ""
        found += [known] if (known := read(run)) else []

    assert decided(completion, "neutral", 7, found)["conclusion"] == shown
    bodies = dict(corrections(found, 7))
    assert {id_: body["conclusion"] for id_, body in bodies.items()} == corrected
    assert all(body["output"]["title"] == title for body in bodies.values())
    assert undecided(completion, "failure") is completion
    assert undecided(completion, "neutral")["conclusion"] == "action_required"


def test_commands_stand_at_the_lines() -> None:
    [line] = as_commands([Annotation("a,b.yaml", 3, "failure", "Case: 1", "Failed\n100 % wrong")])

    assert parsed_command(line) == (
        "error",
        {"file": "a,b.yaml", "line": "3", "title": "Case: 1"},
        "Failed\n100 % wrong",
    )


@pytest.mark.parametrize(("count", "shown", "last"), [(10, 10, "Failed 9"), (11, 9, "2 more causes are in the job")])
def test_the_last_command_counts_omitted_annotations(count: int, shown: int, last: str) -> None:
    lines = as_commands(listed(count))

    assert len(lines) == 10
    assert sum("file=" in line for line in lines) == shown
    assert last in lines[-1]


@given(levels=st.lists(st.sampled_from(["failure", "warning"]), max_size=40), limit=st.integers(1, 12))
def test_each_level_keeps_within_its_limit_and_no_case_is_lost(levels: list[Any], limit: int) -> None:
    items = [Annotation("a.yaml", 1, level, "Case", "Failed") for level in levels]
    commands = [parsed_command(line) for line in as_commands(items, limit)]

    for level, name in (("failure", "error"), ("warning", "warning")):
        mine = [command for command in commands if command[0] == name]
        cases = [1 if "file" in properties else int(data.split()[0]) for _, properties, data in mine]
        assert len(mine) <= limit
        assert sum(cases) == levels.count(level)


# A local server, because repetitions happen inside the HTTP library.


@dataclass
class Server:
    """Keeps what is written to one check run, and loses the answers to some of it."""

    url: str = ""
    losses: dict[str, int] = field(default_factory=dict)
    arrives: bool = True
    received: list[Body] = field(default_factory=list)
    kept: list[Body] = field(default_factory=list)

    @property
    def annotations(self) -> list[str]:
        return [item["title"] for body in self.kept for item in body["output"].get("annotations", [])]

    def patch(self, body: Body) -> int:
        self.received.append(body)
        kind = "completion" if "status" in body else "addition"
        lost = self.losses.get(kind, 0) > 0
        self.losses[kind] = self.losses.get(kind, 0) - 1
        if not lost or self.arrives:
            self.kept.append(body)
        return 502 if lost else 200

    def shown(self) -> Body:
        done = any("status" in body for body in self.kept)
        return {
            "id": 7,
            "status": "completed" if done else "in_progress",
            "output": {"annotations_count": len(self.annotations)},
        }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(pygithub, "_PAUSES_S", (0.0, 0.0, 0.0))
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            self.reply(state.patch(json.loads(self.rfile.read(int(self.headers["content-length"])))))

        def do_GET(self) -> None:
            self.reply(200)

        def reply(self, status: int) -> None:
            content = json.dumps(state.shown()).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as state.url:
        yield state


def finish(server: Server, count: int) -> None:
    pygithub.finish_check(
        GitHubClient("token", server.url),
        "acme/widgets",
        CheckRun(7),
        conclusion="failure",
        title="1 case broke",
        summary="1 of 2 passed",
        text="Details",
        annotations=listed(count),
    )


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("losses", [1, 2])
def test_annotations_whose_answer_was_lost_are_there_once(server: Server, losses: int, arrives: bool) -> None:
    server.losses, server.arrives = {"addition": losses}, arrives

    finish(server, 120)

    assert server.annotations == [item.title for item in listed(120)]
    assert server.shown()["status"] == "completed"
    assert len(server.received) == (4 if arrives else 4 + losses)


def test_annotations_that_never_arrive_do_not_keep_it_from_being_completed(server: Server) -> None:
    server.losses, server.arrives = {"addition": 99}, False

    with pytest.raises(GithubError, match="cannot complete check run 7 of acme/widgets: GitHub answered 502"):
        finish(server, 120)

    assert server.kept == finished()
    assert len(server.received) == 4
