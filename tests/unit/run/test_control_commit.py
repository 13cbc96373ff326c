"""Which commit is the control, for every event and every kind of checkout."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from agenteval.run.git import ControlError, ControlRule, Head, control_commit

PR = "pull request's head"
MERGE = Head("merge", ("base tip", PR))
BRANCH = Head(PR, ("earlier",))
UPDATED = Head(PR, ("earlier", "base tip"))
ROOT = Head("root")
OF_PULL_REQUEST = ControlRule("pull-request", merge="merge", base="base sha", branch="main")


@dataclass(frozen=True)
class History:
    """A history that is given; unknown pairs are those of a shallow clone."""

    ancestors: dict[tuple[str, str], bool] = field(default_factory=dict)
    on_main: frozenset[str] = frozenset()

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        return self.ancestors.get((commit, descendant))

    def is_on(self, commit: str, branch: str) -> bool:
        return branch == "main" and commit in self.on_main

    def merge_base(self, one: str, other: str) -> str:
        return f"merge base of {one} and {other}"


@pytest.mark.parametrize(
    ("rule", "head", "ancestors", "expected"),
    [
        pytest.param(OF_PULL_REQUEST, MERGE, {}, "base tip", id="merge commit"),
        pytest.param(OF_PULL_REQUEST, BRANCH, {}, f"merge base of {PR} and base sha", id="head ref"),
        pytest.param(
            OF_PULL_REQUEST, UPDATED, {}, f"merge base of {PR} and base sha", id="head ref that was updated"
        ),
        pytest.param(
            OF_PULL_REQUEST,
            Head("evil", ("of the author", PR)),
            {},
            "merge base of evil and base sha",
            id="a merge commit that the author of the pull request made",
        ),
        pytest.param(
            replace(OF_PULL_REQUEST, fork="fork"),
            BRANCH,
            {},
            "fork",
            id="head ref that GitHub knows",
        ),
        pytest.param(
            replace(OF_PULL_REQUEST, merge="older merge", fork="base tip"),
            MERGE,
            {},
            "base tip",
            id="newer merge",
        ),
        pytest.param(ControlRule("previous", before="old"), MERGE, {}, "old", id="push, shallow"),
        pytest.param(ControlRule("previous", before="old"), MERGE, {("old", "merge"): True}, "old", id="push"),
        pytest.param(
            ControlRule("previous", before="old"), MERGE, {("old", "merge"): False}, "base tip", id="replaced history"
        ),
        pytest.param(ControlRule("previous"), BRANCH, {}, "earlier", id="forced push"),
        pytest.param(ControlRule("first-parent"), MERGE, {}, "base tip", id="schedule"),
        pytest.param(ControlRule("merge-base"), MERGE, {}, "merge base of merge and baseline", id="feature branch"),
        pytest.param(ControlRule("merge-base", fork="fork"), MERGE, {}, "fork", id="branch that GitHub knows"),
        pytest.param(ControlRule(), BRANCH, {}, f"merge base of {PR} and baseline", id="laptop"),
    ],
)
def test_the_control(rule: ControlRule, head: Head, ancestors: dict[tuple[str, str], bool], expected: str) -> None:
    found = control_commit(rule, head, "baseline", History(ancestors))
    assert found.commit == expected
    assert bool(found.note) == (rule.kind == "pull-request" and expected != "base tip")


@pytest.mark.parametrize(
    ("branch", "head", "on_main", "expected"),
    [
        pytest.param("main", MERGE, {"base tip"}, "base tip", id="a change merged into main"),
        pytest.param("main", MERGE, {"base tip", "merge"}, "merge base", id="main itself"),
        pytest.param("main", MERGE, {PR}, "merge base", id="something merged into the change"),
        pytest.param("main", UPDATED, {"base tip"}, "merge base", id="main merged into the change"),
        pytest.param("main", BRANCH, {"earlier"}, "merge base", id="no merge"),
        pytest.param("other", MERGE, {"base tip"}, "merge base", id="another branch"),
        pytest.param(None, MERGE, {"base tip"}, "merge base", id="a baseline without a branch"),
        pytest.param("main", Head("baseline", ("a", "b")), {"a", "baseline"}, "merge base", id="edited"),
    ],
)
def test_without_a_ci_host_only_a_merge_into_the_base_branch_has_a_first_parent(
    branch: str | None, head: Head, on_main: set[str], expected: str
) -> None:
    history = History({("baseline", "base tip"): True}, frozenset(on_main))
    found = control_commit(ControlRule(branch=branch), head, "baseline", history)
    assert found.commit in {expected, f"{expected} of {head.commit} and baseline"}


@pytest.mark.parametrize(
    ("rule", "head", "baseline", "said"),
    [
        (ControlRule("first-parent"), ROOT, "baseline", "has no parent"),
        (ControlRule("previous"), ROOT, "baseline", "has no parent"),
        (ControlRule("pull-request", merge="merge"), BRANCH, "baseline", "does not name its base commit"),
        (ControlRule(), BRANCH, None, "the baseline names no commit; commit its files before the run that makes it"),
    ],
)
def test_without_a_control_the_reason_is_told(rule: ControlRule, head: Head, baseline: str | None, said: str) -> None:
    with pytest.raises(ControlError, match=said):
        control_commit(rule, head, baseline, History())


def test_the_note_names_the_branch() -> None:
    found = control_commit(OF_PULL_REQUEST, BRANCH, None, History())
    assert "what happened on main since is not in the pull request's run" in found.note
