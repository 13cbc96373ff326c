"""When a run of the base branch is started, against an independent emulation of GitHub."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from tests.git_server import commit, git
from tests.peers.baselines import results
from tests.peers.github_actions import WORKFLOW, StoredRun
from tests.peers.github_emulator import REPOSITORY
from tests.peers.github_service import GithubService
from tests.peers.pull_request import PullRequest
from tests.support import open_folder, results_in

from agenteval.github.base_run import BaseRunRequest
from agenteval.github.client import GithubError
from agenteval.results.comparison import BaselineInfo, Comparison, LowControl
from agenteval.results.model import Memory, Results

pytestmark = pytest.mark.peer

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEGAN = "2026-02-01T00:00:00.000Z"
LOW = LowControl(p=0.1, epoch_began_at=BEGAN, dispatches=True)
BASE = "main"


def compared(number: int, low: LowControl | None = LOW, *, repeats: bool = False) -> Results:
    """A run for a pull request, which has found that the control is low."""
    made = results("a" * 40, run_id=f"pull-{number}")
    info = BaselineInfo(commit="b" * 40, ref="refs/heads/main", run_id="base", created_at=BEGAN)
    comparison = Comparison(
        baseline=info, verdict="unchanged", metrics=[], cases=[], policy={"reason": "-"}, low_control=low
    )
    at = {"ref": f"refs/pull/{number}/merge", "started_at": NOW.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
    memory = Memory(attempt=1, key="0" * 64, repeats=repeats)
    run = made.run.model_copy(update=at)
    return made.model_copy(update={"run": run, "comparison": comparison, "memory": memory})


def ran(github: GithubService, hours_ago: float, **details: Any) -> StoredRun:
    named = {"event": "pull_request", "branch": "other", **details}
    return github.actions.run(REPOSITORY, "a" * 40, created_at=NOW - timedelta(hours=hours_ago), **named)


def uploaded(github: GithubService, hours_ago: float, content: Results | bytes, **details: Any) -> None:
    """The artifact of a run for another pull request."""
    data = BytesIO()
    with ZipFile(data, "w") as archive:
        text = content if isinstance(content, bytes) else content.model_dump_json()
        archive.writestr("results.json", text)
    github.actions.artifact(ran(github, hours_ago, **details), "agenteval", data.getvalue())


def asked(github: GithubService, low: LowControl = LOW) -> str:
    request = BaseRunRequest(github.client(retries=0), REPOSITORY, "agenteval.yml", "agenteval", BASE, "feature")
    return request.make(compared(7, low), low)


def started(github: GithubService) -> list[StoredRun]:
    return [run for run in github.actions.runs if run.actor == "github-actions[bot]"]


def test_two_pull_requests_of_a_day_start_one_run_of_the_base_branch(github: GithubService) -> None:
    ran(github, 30, event="push", branch=BASE)
    uploaded(github, 3, compared(5))

    said = asked(github)

    assert said == (
        "the base commit's agent scored lower than in the earlier runs here and in pull request #5, so a new run of "
        "main was started"
    )
    (run,) = started(github)
    assert (run.event, run.head_branch, run.workflow) == (
        "workflow_dispatch",
        BASE,
        WORKFLOW,
    )
    # Once in each epoch, however many pull requests find the same.
    uploaded(github, 1, compared(6))
    assert asked(github) == ""
    assert len(started(github)) == 1


@pytest.mark.parametrize("content", [compared(5, None), compared(7), compared(5, repeats=True), b"{}", b"no results"])
def test_other_results_start_nothing(github: GithubService, content: Results | bytes) -> None:
    uploaded(github, 3, content)
    assert asked(github) == ""
    assert not started(github)


@pytest.mark.parametrize(
    ("hours_ago", "details"),
    [
        (25, {}),
        (3, {"branch": "feature"}),
        # The authors of forks control what their runs upload.
        (3, {"head_repository": "mallory/widgets"}),
        (3, {"event": "push"}),
        (3, {"status": "in_progress", "conclusion": None}),
        (3, {"workflow": ".github/workflows/other.yml"}),
    ],
)
def test_other_runs_start_nothing(github: GithubService, hours_ago: float, details: dict[str, Any]) -> None:
    uploaded(github, hours_ago, compared(5), **details)
    assert asked(github) == ""
    assert not started(github)


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_a_base_branch_that_ran_since_needs_no_other_run(github: GithubService, event: str) -> None:
    uploaded(github, 3, compared(5))
    ran(github, 2, event=event, branch=BASE)
    assert asked(github) == ""
    assert not started(github)


def test_the_job_of_a_pull_request_starts_the_run(github: GithubService) -> None:
    with open_folder() as home:
        pull = PullRequest(github, home)
        pull.create()
        git(pull.workspace, "checkout", "--quiet", "main")
        pull.configure({"fail_on": ["regressions", "unproven"], "on_low_control": "dispatch"})
        commit(pull.workspace)
        git(pull.workspace, "checkout", "--quiet", "-B", "feature")
        pull.push(notes_txt="A change that breaks nothing.\n")
        pull.break_provider()
        alone = pull.run()
        assert (alone.status, started(github)) == (0, []), alone.log
        mine = results_in(pull.workspace)
        assert mine.comparison is not None
        assert mine.comparison.low_control is not None
        theirs = mine.model_copy(update={"run": mine.run.model_copy(update={"ref": "refs/pull/5/merge"})})
        uploaded(github, (NOW - datetime.now(UTC)) / timedelta(hours=1), theirs)

        together = pull.run()

        assert together.status == 0, together.log
        assert len(started(github)) == 1
        assert "pull request #5, so a new run of main was started" in together.log


def test_another_epoch_is_another_pool(github: GithubService) -> None:
    later = LOW.model_copy(update={"epoch_began_at": "2026-02-20T00:00:00.000Z"})
    uploaded(github, 3, compared(5))
    assert asked(github, later) == ""
    # What was started for the epoch before does not count.
    ran(github, 24 * 20, event="workflow_dispatch", branch=BASE, actor="github-actions[bot]")
    uploaded(github, 2, compared(6, later))
    assert "and in pull request #6" in asked(github, later)


def test_few_artifacts_are_read(github: GithubService) -> None:
    uploaded(github, 20, compared(5))
    for number in range(10):
        uploaded(github, 10 - number / 2, compared(20 + number, None))
    assert asked(github) == ""
    assert len(github.proxy.called("GET", "/zip")) == 10


def test_what_is_missing_is_named(github: GithubService) -> None:
    uploaded(github, 3, compared(5))
    github.proxy.fail("POST", "/dispatches", status=403)
    with pytest.raises(GithubError, match="actions: write"):
        asked(github)
    github.proxy.forget()
    github.actions.is_dispatchable = False
    with pytest.raises(GithubError, match="needs the trigger `workflow_dispatch`"):
        asked(github)
    with pytest.raises(GithubError, match="cannot look for other pull requests"):
        asked(github, LOW.model_copy(update={"epoch_began_at": "yesterday"}))
