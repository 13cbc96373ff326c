"""Which artifact is the earlier attempt of a pull request, against an independent emulation of GitHub."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.peers.baselines import results
from tests.peers.github_actions import StoredArtifact, StoredRun, zipped
from tests.peers.github_emulator import OWNER, REPOSITORY
from tests.peers.github_service import GithubService

from agenteval.github.pull_request import RemoteAttempts
from agenteval.results.model import Memory, Results
from agenteval.run.context import Recollection

pytestmark = pytest.mark.peer

NUMBER = 7
LABEL = "agenteval: forget"
_START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def attempt(number: int = 1, pull_request: int = NUMBER, **changes: Any) -> Results:
    """Results of an attempt."""
    found = results("a" * 40, run_id=f"attempt {number}")
    memory = Memory(attempt=number, key=f"{number:064x}", **changes)
    run = found.run.model_copy(update={"ref": f"refs/pull/{pull_request}/merge", "base_ref": "main"})
    return found.model_copy(update={"run": run, "memory": memory})


def uploaded(github: GithubService, content: Results | str, **details: Any) -> StoredArtifact:
    """An artifact of a new run for the pull request, an hour after the one before."""
    text = content if isinstance(content, str) else content.model_dump_json()
    return github.actions.artifact(run(github, **details), "agenteval", zipped(text))


def run(github: GithubService, **details: Any) -> StoredRun:
    moment = _START + timedelta(hours=len(github.actions.runs))
    named = {"branch": "feature", "event": "pull_request", "created_at": moment, **details}
    return github.actions.run(REPOSITORY, "a" * 40, **named)


def recalled(github: GithubService, **changes: Any) -> Recollection:
    asked = {"workflow": "agenteval.yml", "artifact": "agenteval", "branch": "feature", "base_ref": "main", **changes}
    return RemoteAttempts(github.client, REPOSITORY, pull_request=NUMBER, **asked).recall()


def newest(github: GithubService) -> Memory:
    found = recalled(github)
    assert found.results is not None, found
    assert found.results.memory is not None
    return found.results.memory


def test_the_newest_attempt_is_found_with_few_questions(github: GithubService) -> None:
    first, second = (uploaded(github, attempt(number)) for number in (1, 2))

    found = recalled(github)

    assert found.results is not None
    assert (found.results, found.warnings, found.forgotten_by) == (attempt(2), (), None)
    asked = [f"{request.method} {request.route}" for request in github.proxy.requests]
    repository = f"GET /repos/{REPOSITORY}"
    assert asked == [
        f"{repository}/actions/workflows/agenteval.yml/runs",
        f"{repository}/actions/runs/{second.run.id}/artifacts",
        f"{repository}/actions/runs/{first.run.id}/artifacts",
        f"{repository}/actions/artifacts/{second.id}/zip",
        f"GET /_blob/{second.id}",
        f"{repository}/issues/{NUMBER}/events",
    ]


def test_the_first_attempt_has_none_before_it(github: GithubService) -> None:
    assert recalled(github) == Recollection()
    run(github)
    assert recalled(github) == Recollection()
    # The pull request adds the workflow.
    assert recalled(github, workflow="new.yml") == Recollection()


def test_runs_that_were_not_searched_are_told(github: GithubService) -> None:
    uploaded(github, attempt(1))
    for _ in range(19):
        # Cancelled by the next push, before the upload.
        run(github, conclusion="cancelled")
    assert recalled(github).results is not None
    for _ in range(3):
        run(github, conclusion="cancelled")
    found = recalled(github)
    assert found.results is None
    assert "contain no run of it, and 3 older ones were not read" in found.warnings[0]


def test_a_run_that_is_repeated_finds_its_own_attempts(github: GithubService) -> None:
    again = run(github, status="in_progress", conclusion=None)
    for number in (1, 2):
        github.actions.artifact(again, "agenteval", zipped(attempt(number).model_dump_json()))

    assert newest(github).attempt == 2


def _changed(**memory: Any) -> str:
    value = json.loads(attempt(2).model_dump_json())
    value["memory"].update(memory)
    return json.dumps(value)


def test_what_is_no_attempt_is_passed_over_and_what_is_unreadable_is_named(github: GithubService) -> None:
    uploaded(github, attempt(1))
    # Another pull request of the branch, an earlier version, and no pull request.
    for other in (attempt(2, pull_request=6), results("a" * 40), results(None)):
        uploaded(github, other)
    found = recalled(github)
    assert found.results is not None
    assert (newest(github).attempt, found.warnings) == (1, ())

    damaged = [
        uploaded(github, text)
        for text in (
            "",
            "[]",
            '{"schema_version": 99}',
            _changed(attempt=0),
            _changed(attempt=10**30),
            _changed(key="../" * 21 + "x"),
            _changed(control="--upload-pack=x"),
            _changed(proven=[{"metric": "m", "fall": float("nan")}]),
            _changed(proven=[{"metric": "m", "fall": float("inf")}]),
            _changed(proven=[{"metric": "m", "fall": 0}]),
            _changed(proven=[{"metric": "m", "fall": 0.5}] * 10_001),
            _changed(proven=[{"metric": "m", "case": "c" * 10_001, "fall": 0.5}]),
            _changed(proven=[{"case": "c", "fall": 0.5}]),
            _changed(forgotten_by="x" * 10_001),
        )
    ]
    found = recalled(github)
    assert newest(github).attempt == 1
    for artifact, note in zip(damaged[::-1], found.warnings, strict=True):
        assert note.startswith(f"artifact agenteval of workflow run {artifact.run.id} cannot be used: results.json")
        assert len(note) <= 500


def test_a_label_after_many_events_counts(github: GithubService) -> None:
    artifact = uploaded(github, attempt())
    for _ in range(150):
        github.labels.event(NUMBER, "labeled", "bug", OWNER, artifact.created_at)
    github.labels.event(NUMBER, "labeled", LABEL, OWNER, artifact.created_at + timedelta(minutes=10))

    assert recalled(github).forgotten_by == OWNER


def test_journals_are_restored(github: GithubService, tmp_path: Path) -> None:
    files = {"journal.jsonl": "first", "confirmation-1.jsonl": "second", "confirmation-3.jsonl": "no part", "x": "y"}
    data = zipped(attempt().model_dump_json(), **files)
    github.actions.artifact(run(github), "agenteval", data)

    restore = recalled(github).restore
    assert restore is not None
    assert restore(tmp_path)

    found = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert found == {"journal.jsonl": "first", "confirmation-1.jsonl": "second"}

    other = tmp_path / "other"
    other.mkdir()
    data = zipped(attempt().model_dump_json(), **{"confirmation-1.jsonl": "second"})
    github.actions.artifact(run(github), "agenteval", data)
    restore = recalled(github).restore
    assert restore is not None
    assert not restore(other)
    assert list(other.iterdir()) == []
