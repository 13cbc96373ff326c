"""Which commit is the control, for every event and every kind of checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.records import dataclass, field, replace
from agenteval.run.base_commit import ControlRule, LocalHost, control_commit
from agenteval.run.git import Clone, ControlError, Head

PR = "pull request's head"
MERGE = Head("merge", ("base tip", PR))
BRANCH = Head(PR, ("earlier",))
UPDATED = Head(PR, ("earlier", "base tip"))
ROOT = Head("root")
OF_PULL_REQUEST = ControlRule("pull-request", merge="merge", base="base sha", branch="main")


@dataclass(frozen=True)
class History(Clone):
    """A history that is given; unknown pairs are those of a shallow clone."""

    ancestors: dict[tuple[str, str], bool] = field(default_factory=dict)

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        return self.ancestors.get((commit, descendant))

    def merge_base(self, one: str, other: str) -> str:
        return f"merge base of {one} and {other}"


def control(
    rule: ControlRule, head: Head, baseline: str | None, ancestors: dict[tuple[str, str], bool] | None = None
) -> tuple[str, str]:
    return control_commit(LocalHost(rule), History(Path(), head, True, ancestors or {}), baseline)


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
    commit, note = control(rule, head, "baseline", ancestors)
    assert commit == expected
    assert bool(note) == (rule.kind == "pull-request" and expected != "base tip")


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
        control(rule, head, baseline)


def test_the_note_names_the_branch() -> None:
    _, note = control(OF_PULL_REQUEST, BRANCH, None)
    assert "what happened on main since is not in the pull request's run" in note
