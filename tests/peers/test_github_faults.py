"""What the search for a baseline makes of a GitHub that fails, hangs or lies."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import pytest
from tests.peers.baselines import Project
from tests.peers.github_actions import zipped
from tests.peers.github_emulator import OWNER_TOKEN
from tests.peers.github_service import GithubService
from tests.support import recorded_pauses_of
from urllib3.util import retry

from agenteval.github import connection
from agenteval.github.artifacts import ArtifactLimits
from agenteval.github.baseline import Found, Missing, SearchLimits, Start

pytestmark = pytest.mark.peer

PRIMARY = {"message": "API rate limit exceeded for installation ID 1.", "status": "403"}
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
FORBIDDEN = "Resource not accessible by integration"

# What is asked before the first artifact, after it, and the store that is not GitHub.
QUESTIONS = ["/commits[?]", r"/agenteval\.yml/runs"]
OF_ARTIFACTS = [r"/runs/\d+/artifacts", "/zip$"]
BLOB = "/_blob/"


@pytest.fixture
def project(github: GithubService) -> Project:
    """Both the merge base and its parent have a good artifact."""
    project = Project.create(github, length=2)
    for commit in project.commits:
        project.artifact(project.run(commit))
    return project


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return recorded_pauses_of(monkeypatch, connection, retry)


def _find(project: Project, *, retries: int = 1, **download: Any) -> Found | Missing:
    limits = SearchLimits(artifact=ArtifactLimits(**{"pauses_s": (0.0, 0.0), **download}))
    # It has no run, so GitHub is asked for the commits before it.
    start = Start(project.later[-1], "the base commit")
    outcome = project.find(client=project.github.client(timeout_s=2, retries=retries), limits=limits, start=start)
    assert OWNER_TOKEN not in f"{outcome!r}"
    return outcome


def _missing(project: Project, **options: Any) -> str:
    outcome = _find(project, **options)
    assert isinstance(outcome, Missing)
    return outcome.reason


def _found(project: Project, **options: Any) -> Found:
    outcome = _find(project, **options)
    assert isinstance(outcome, Found)
    return outcome


def _notes_of_next(project: Project, **options: Any) -> str:
    """What is said of the nearest artifact, when the next one is taken."""
    found = _found(project, **options)
    assert found.commit == project.commits[1]
    [note] = found.notes
    return note


def _fails(project: Project, path: str, fault: dict[str, Any]) -> None:
    """Forget the faults so far, and fail with this one."""
    project.github.proxy.forget()
    project.github.proxy.fail("GET", path, **fault)


def test_what_concerns_every_question_ends_the_search_at_once(project: Project, waits: list[float]) -> None:
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 399_000)}
    faults: list[tuple[dict[str, Any], str]] = [
        ({"status": 401, "body": {"message": "Bad credentials"}}, "401 (Bad credentials). The token is invalid"),
        ({"status": 403, "body": {"message": FORBIDDEN}}, "permissions:\n  actions: read\n  contents: read"),
        ({"status": 403, "body": PRIMARY, "headers": reset}, "It asks to wait 39"),
        ({"status": 429, "body": SECONDARY, "headers": {"Retry-After": "61"}}, "It asks to wait 61 s"),
    ]
    for path, (fault, reason) in product((*QUESTIONS, *OF_ARTIFACTS), faults):
        _fails(project, path, {"times": 100, **fault})
        assert reason in _missing(project), path
        assert len(project.github.proxy.called("GET", path)) == 1, (path, fault)
    assert waits == []


def test_what_passes_is_asked_again(project: Project, waits: list[float]) -> None:
    faults: list[tuple[dict[str, Any], list[float]]] = [
        ({"status": 403, "body": SECONDARY}, [60]),
        ({"status": 429, "body": SECONDARY, "headers": {"Retry-After": "8"}}, [8]),
        ({"status": 502, "body": b"<html>"}, []),
        ({"reset": True}, []),
    ]
    for path, (fault, waited) in product((*QUESTIONS, *OF_ARTIFACTS), faults):
        waits.clear()
        _fails(project, path, fault)
        assert _found(project).commit == project.commits[0], (path, fault)
        assert waits == waited


def test_without_an_answer_there_is_no_baseline(project: Project) -> None:
    faults: list[tuple[dict[str, Any], str]] = [
        ({"status": 500}, "GitHub answered 500"),
        ({"reset": True}, "GitHub did not answer"),
        ({"status": 422, "body": {"message": "Validation Failed"}}, "422 (Validation Failed)"),
        ({"status": 200, "body": b"<html>Sign in</html>"}, "GitHub's response is invalid"),
        ({"status": 200, "body": {"message": "hello"}}, "GitHub's response is invalid"),
        ({"truncate": True}, "GitHub did not answer"),
    ]
    for path, (fault, reason) in product(QUESTIONS, faults):
        _fails(project, path, {"times": 100, **fault})
        assert reason in _missing(project, retries=0), (path, fault)


def test_one_artifact_that_cannot_be_had_is_passed_over(project: Project) -> None:
    of_run, of_zip = OF_ARTIFACTS
    for path, status, note in (
        (of_run, 404, "404"),
        (of_run, 500, "500"),
        (of_zip, 404, "it does not exist any more"),
        (of_zip, 410, "it has expired"),
        (of_zip, 500, "500 (Server Error)"),
    ):
        _fails(project, path, {"status": status, "body": {"message": "Server Error"}})
        assert note in _notes_of_next(project, retries=0), (path, status)


def test_a_store_that_fails_is_asked_three_times(project: Project) -> None:
    first = project.github.actions.artifacts[0].id
    faults: list[tuple[dict[str, Any], str]] = [
        ({"status": 403}, "the store it is in answered 403"),
        ({"status": 500}, "the store it is in answered 500"),
        ({"reset": True}, "its download was interrupted"),
        ({"truncate": True}, "its download was interrupted"),
    ]
    for fault, note in faults:
        _fails(project, BLOB, {"times": 2, **fault})
        assert _found(project).commit == project.commits[0], fault

        _fails(project, BLOB, {"times": 3, **fault})
        assert note in _notes_of_next(project), fault
        # The address is signed and lives for a minute only, so each attempt asks for a new one.
        assert len(project.github.proxy.called("GET", f"/artifacts/{first}/zip")) == 3


def test_what_does_not_pass_is_asked_once(project: Project) -> None:
    first = project.github.actions.artifacts[0].id
    again = {"Location": "/_blob/1?again"}
    faults: list[tuple[dict[str, Any], str]] = [
        ({"status": 404}, "it does not exist any more"),
        ({"status": 410}, "it has expired"),
        ({"status": 200, "body": b""}, "its content does not match its digest"),
        ({"status": 200, "body": b"0" * 2000}, "it is larger than 1,500 bytes"),
        ({"status": 302, "headers": {"Location": "ftp://localhost/a"}, "body": b""}, "its address is invalid"),
        ({"status": 302, "headers": again, "body": b"", "times": 20}, "its address is invalid"),
    ]
    for fault, note in faults:
        _fails(project, rf"{BLOB}({first}|1)\b", fault)
        assert note in _notes_of_next(project, size=1500), fault
        assert len(project.github.proxy.called("GET", f"/artifacts/{first}/zip")) == 1

    _fails(project, "/zip$", {"status": 302, "body": b""})
    assert "GitHub returned no address" in _notes_of_next(project)


@pytest.mark.parametrize("fault", [{"delay_s": 60}, {"drip_s": 60}], ids=str)
def test_a_store_that_hangs_or_stops_in_the_middle(project: Project, fault: dict[str, Any]) -> None:
    project.github.proxy.fail("GET", BLOB, **fault)

    assert "its download stalled for 0.2 s" in _notes_of_next(project, silence_s=0.2, pauses_s=())


def test_a_store_that_drips(project: Project) -> None:
    size = len(project.github.actions.artifacts[0].data)
    fault = project.github.proxy.fail("GET", BLOB, drip_s=0.005)

    assert "its download took longer than 0.3 s" in _notes_of_next(project, total_s=0.3)
    assert fault.dripped < size


def test_a_store_that_drips_more_than_it_should(project: Project) -> None:
    fault = project.github.proxy.fail("GET", BLOB, drip_s=0.001)

    outcome = _find(project, size=100)

    assert isinstance(outcome, Missing)
    assert "it is larger than 100 bytes" in outcome.notes[0]
    assert fault.dripped < len(project.github.actions.artifacts[0].data)


def test_a_member_too_large(project: Project) -> None:
    artifact = project.github.actions.artifacts[0]
    artifact.data, artifact.digest = zipped(b"0" * 5000), None
    limits = SearchLimits(artifact=ArtifactLimits(member_size=4000))

    assert "its results.json is larger than 4,000 bytes" in project.found(limits=limits).notes[0]


def test_the_search_as_a_whole_is_bounded(project: Project) -> None:
    outcome = project.missing(limits=SearchLimits(total_s=-1.0))

    assert outcome.notes == ("the search ended after -1 s, its limit; name a run with the input baseline",)


def test_a_given_run_that_cannot_be_read(project: Project) -> None:
    run = project.github.actions.runs[0]
    project.github.proxy.refuse("/actions/")

    outcome = project.missing(start=run.id)

    assert f"cannot read workflow run {run.id} of {project.history.name}" in outcome.reason
    assert "actions: read" in outcome.reason


def test_a_server_that_is_not_there(project: Project) -> None:
    client = project.github.client(retries=0)
    nowhere = type(client)(OWNER_TOKEN, "http://127.0.0.1:1", retries=0)

    assert "GitHub did not answer" in project.missing(client=nowhere).reason
