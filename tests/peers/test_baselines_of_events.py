"""What the action compares each event with: a local repository, its checkouts, and an emulated GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.peers.github_service import GithubService
from tests.peers.local_history import EVERYTHING, LocalHistory, local_history

pytestmark = pytest.mark.peer


@pytest.fixture
def here(github: GithubService) -> Iterator[LocalHistory]:
    with local_history(github) as found:
        yield found


def test_what_main_did_since_is_not_charged_to_a_pull_request(here: LocalHistory) -> None:
    left = here.commit(answer="right")
    here.evaluated(left)
    head = here.commit(left, readme="harmless")
    worse = here.commit(left, answer="wrong")
    here.evaluated(worse)
    merge = here.commit(worse, head)

    # The event names the commit that the pull request left.
    innocent = here.pull_request(merge, head, left, depth=1)

    assert innocent.status == 0, innocent.log
    assert here.baseline() == (worse, 0, [])
    assert f"baseline: commit {worse[:7]}, the base commit" in innocent.log


def test_what_main_repaired_since_does_not_hide_the_fault_of_a_pull_request(here: LocalHistory) -> None:
    left = here.commit(answer="wrong")
    here.evaluated(left)
    head = here.commit(left, broken="")
    repaired = here.commit(left, answer="right")
    here.evaluated(repaired)
    merge = here.commit(repaired, head)

    guilty = here.pull_request(merge, head, left, depth=EVERYTHING)

    assert guilty.status == 1, guilty.log
    assert guilty.outputs["regressions"] == "1"
    assert here.baseline() == (repaired, 0, [])


def test_a_run_many_commits_ago_is_compared_and_the_commits_since_are_named(here: LocalHistory) -> None:
    first = here.commit(answer="right")
    here.evaluated(first)
    states = [first]
    for _ in range(64):
        states.append(here.commit(states[-1]))
    base = states[-1]
    here.ref("heads/main", base)
    head = here.commit(first, readme="harmless")
    merge = here.commit(base, head)

    for depth in (1, EVERYTHING):
        step = here.pull_request(merge, head, first, depth=depth)

        assert step.status == 0, step.log
        assert here.baseline() == (first, 64, states[:0:-1][:20])
        named = ", ".join(commit[:7] for commit in states[:-6:-1])
        assert "64 commits before the base commit" in step.log
        assert f"the comparison includes {named} and 59 more" in step.log
        assert "64 commits before the base commit" in step.summary
        # GitHub lists the commits of a shallow checkout.
        assert bool(here.github.proxy.called("GET", "/local/commits[?]")) == (depth == 1)
        here.github.proxy.forget()


def test_events_that_bring_no_change_are_compared_with_an_earlier_run_of_their_commit(here: LocalHistory) -> None:
    commit = here.commit(here.commit(answer="right"), readme="harmless")
    here.evaluated(commit)
    here.ref("tags/v1", commit)
    main = "refs/heads/main"
    events = {"push": "refs/tags/v1", "schedule": main, "issue_comment": main, "repository_dispatch": main}
    for event, ref in events.items():
        step = here.job(event, commit, ref, {"created": True})

        assert step.status == 0, (event, step.log)
        assert here.baseline() == (commit, 0, []), event


def test_a_push_to_a_release_branch_is_compared_with_its_own_runs(here: LocalHistory) -> None:
    fork = here.commit(answer="right")
    here.evaluated(fork)
    first = here.commit(fork, answer="wrong")
    second, third = (here.commit(first, readme=text) for text in ("harmless", "as harmless"))
    here.ref("heads/release", first)
    here.ref("heads/feature", third)
    release, protected = "refs/heads/release", {"GITHUB_REF_PROTECTED": "true"}
    here.job("push", first, release, {"created": True}, variables=protected, fail_on="none")
    assert here.baseline() == (fork, 0, [])
    here.upload(first, branch="release")

    here.ref("heads/release", second)
    step = here.job("push", second, release, {"before": first}, variables=protected)
    assert here.baseline() == (first, 0, [])
    assert step.outputs["regressions"] == "0", step.log

    # A branch that anybody may push to is compared with main: its second push hides nothing.
    step = here.job("push", third, "refs/heads/feature", {"before": first})
    assert step.outputs["regressions"] == "1", step.log
    assert here.baseline()[0] == fork


def test_no_event_is_green_without_a_comparison_that_was_asked_for(here: LocalHistory) -> None:
    settings = here.work / "agenteval.yaml"
    settings.write_text("gate: {pairs: 4, on_missing_baseline: fail}\n", encoding="utf-8")
    commit = here.commit(here.commit(answer="right"), readme="harmless")
    here.ref("heads/main", commit)
    # The checks of the other events are the same; see the table of docs/github.md.
    for event, ref in {"release": "refs/tags/v1", "check_run": "refs/heads/main", "deployment": ""}.items():
        step = here.job(event, commit, ref)
        assert (step.status, step.outputs["verdict"]) == (3, "unproven"), (event, step.log)
        assert "there is no baseline to compare with" in step.summary, event
        # What ran is the baseline of later runs: otherwise there would never be one.
        assert (here.results.summary.passed, here.results.comparison) == (12, None), event

    settings.write_text("gate: {pairs: 4}\n", encoding="utf-8")
    commit = here.commit()
    here.ref("heads/main", commit)
    warned = here.job("issue_comment", commit, "refs/heads/main")
    assert warned.status == 0, warned.log
    assert "there is no baseline to compare with" in warned.summary


def test_a_comment_that_evaluates_a_pull_request_compares_it_and_makes_no_baseline(here: LocalHistory) -> None:
    base = here.commit(answer="right")
    here.evaluated(base)
    head = here.commit(base, broken="")
    merge = here.commit(base, head)
    here.ref("pull/7/merge", merge)
    asked = {"issue": {"number": 7, "pull_request": {}}}

    step = here.job("issue_comment", base, "refs/heads/main", asked, checkout=merge)

    assert step.status == 1, step.log
    assert here.baseline() == (base, 0, [])
    # GitHub says that the run is of main.
    run = here.results.run
    assert (run.commit, run.ref) == (merge, None)
    for event in ("issue_comment", "workflow_dispatch"):
        here.upload(base, event=event)
    again = here.job("schedule", base, "refs/heads/main")
    assert again.status == 0, again.log
    assert here.baseline() == (base, 0, [])
    assert "its results are of another commit" in again.summary


def test_a_merge_queue_compares_each_group_with_the_queue_before_it(here: LocalHistory) -> None:
    main = here.commit(answer="right")
    here.evaluated(main)
    one, two = here.commit(main, readme="harmless"), here.commit(main, broken="")
    groups = [here.commit(main, one)]
    groups.append(here.commit(groups[0], two))
    before = [main, groups[0]]

    def job(number: int) -> int:
        ref = f"refs/heads/gh-readonly-queue/main/pr-{number}-{before[number]}"
        here.ref(ref.removeprefix("refs/"), groups[number])
        about = {
            "head_sha": groups[number],
            "head_ref": ref,
            "base_ref": "refs/heads/main",
            "base_sha": before[number],
        }
        return here.job("merge_group", groups[number], ref, {"merge_group": about}).status

    # The group before it has not ended yet.
    assert job(1) == 1
    assert here.baseline() == (main, 1, [groups[0]])
    assert job(0) == 0
    assert here.baseline() == (main, 0, [])
    here.upload(groups[0], event="merge_group", branch=f"gh-readonly-queue/main/pr-0-{main}")

    assert job(1) == 1
    assert here.baseline() == (groups[0], 0, [])


def test_the_first_group_of_a_merge_queue_is_compared_with_a_run_of_its_base(here: LocalHistory) -> None:
    main = here.commit(answer="right")
    here.ref("heads/main", main)
    head = here.commit(main, broken="")
    group = here.commit(main, head)
    ref = f"refs/heads/gh-readonly-queue/main/pr-7-{main}"
    here.ref(ref.removeprefix("refs/"), group)
    about = {"head_sha": group, "head_ref": ref, "base_ref": "refs/heads/main", "base_sha": main}

    step = here.job("merge_group", group, ref, {"merge_group": about})

    assert step.status == 1, step.log
    assert here.baseline()[0] == main
    assert "this is the baseline" in step.summary


def test_a_pull_request_on_top_of_another_one_is_compared_with_that_and_the_runs_of_main(here: LocalHistory) -> None:
    main = here.commit(answer="right")
    here.evaluated(main)
    below = here.commit(main, readme="harmless")
    here.ref("heads/below", below)
    head = here.commit(below, broken="")
    merge = here.commit(below, head)

    step = here.pull_request(merge, head, below, onto="below")

    assert step.status == 1, step.log
    assert here.baseline() == (main, 1, [below])


def test_a_job_that_checks_out_something_else_says_nothing_about_a_change(here: LocalHistory) -> None:
    base = here.commit(answer="right")
    head = here.commit(base, broken="")
    merge = here.commit(base, head)
    here.ref("heads/main", base)

    step = here.pull_request(merge, head, base, checkout=base)

    assert step.status == 2, step.log
    assert f"contains commit {base[:7]}, which is without commit {head[:7]} of the pull request" in step.log
    assert step.outputs["verdict"] == "error"

    # A check run is of the commit that was evaluated.
    here.ref("heads/feature", head)
    dispatched = here.job(
        "workflow_dispatch", base, "refs/heads/main", checkout=head, check_name="agent evaluation", baseline="none"
    )
    [made] = here.github.proxy.called("POST", "/check-runs")
    assert json.loads(made.body)["head_sha"] == head, dispatched.log


def test_a_review_compares_the_merge_with_the_base_branch_of_the_pull_request(here: LocalHistory) -> None:
    left = here.commit(answer="right")
    here.evaluated(left)
    release = here.commit(left, answer="wrong")
    here.ref("heads/release", release)
    here.job("push", release, "refs/heads/release", {"created": True}, fail_on="none")
    here.upload(release, branch="release")
    head = here.commit(release, readme="harmless")
    merge = here.commit(release, head)
    here.ref("pull/7/merge", merge)
    of = {"sha": head, "ref": "feature", "repo": {"full_name": "acme/local"}}
    onto = {"sha": release, "ref": "release", "repo": {"full_name": "acme/local"}}

    step = here.job(
        "pull_request_review", merge, "refs/pull/7/merge", {"pull_request": {"number": 7, "head": of, "base": onto}}
    )

    assert step.status == 0, step.log
    assert here.baseline() == (release, 0, [])


def test_a_head_that_is_checked_out_from_its_fork_is_compared_with_the_merge_base(here: LocalHistory) -> None:
    left = here.commit(answer="right")
    here.evaluated(left)
    head = here.commit(left, broken="")
    worse = here.commit(left, answer="wrong")
    here.evaluated(worse)
    merge = here.commit(worse, head)

    # Compared with the base branch as it is now, nothing would have broken.
    guilty = here.pull_request(merge, head, worse, checkout=head, origin="mallory/local", depth=1)

    assert guilty.status == 1, guilty.log
    assert guilty.outputs["regressions"] == "1"
    assert here.baseline() == (left, 0, [])


def test_a_fork_that_is_checked_out_by_a_run_of_main_is_no_state_of_main(here: LocalHistory) -> None:
    base = here.commit(answer="right")
    here.evaluated(base)
    head = here.commit(base, broken="")
    here.ref("pull/7/head", head)
    main = "refs/heads/main"

    # The fork says that its own main branch contains the commit.
    step = here.job("workflow_dispatch", base, main, checkout=head, origin="mallory/local", depth=EVERYTHING)

    assert step.status == 1, step.log
    assert here.baseline() == (base, 0, [])
    assert here.results.run.commit == head
    here.upload(base, event="workflow_dispatch")
    again = here.job("schedule", base, main)
    assert again.status == 0, again.log
    assert "its results are of another commit" in again.summary
