"""What the run of each event is compared with, as the table of docs/github.md says, for real checkouts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.git_server import git

from agenteval.core.errors import AgentEvalError, ConfigError, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.github.baseline import Lineage, Start, find_lineage
from agenteval.github.client import GitHubClient
from agenteval.github.event import EventRights, plan
from agenteval.github.history import GithubHistory
from agenteval.run.base_commit import LocalHost, control_commit
from agenteval.run.git import Clone, ControlError, Head

REPOSITORY = "org/bot"
DOCS = Path(__file__).parents[2] / "docs" / "github.md"
DEPTHS = {"depth 1": ("--depth=1",), "depth 2": ("--depth=2",), "all of it": ()}


def _nobody() -> GitHubClient:
    raise ConfigError(Problem("no token"))


@dataclass(frozen=True)
class Github(GithubHistory):
    """What GitHub knows: the commits of a bare repository."""

    bare: Path = field(default_factory=Path)

    def head(self, commit: str) -> Head:
        return Head(commit, tuple(self._git("rev-parse", f"{commit}^@").split()))

    def merge_base(self, one: str, other: str) -> str:
        return self._git("merge-base", one, other)

    def _git(self, *arguments: str) -> str:
        try:
            return git(self.bare, *arguments)
        except AssertionError:
            raise AgentEvalError("GitHub answered 404") from None


def made(folder: Path, name: str) -> str:
    """A commit that differs from those of other names."""
    (folder / f"{name}.txt").touch()
    git(folder, "add", f"{name}.txt")
    git(folder, "commit", "--quiet", "--message", name)
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Origin:
    """A repository whose main branch has moved on since two pull requests left it; both wait in the merge queue.

    Attributes:
        folder: where one works.
        bare: what GitHub has.
        commits: the commits by name.
    """

    folder: Path
    bare: Path
    commits: dict[str, str]

    @classmethod
    def create(cls, place: Path, root: str = "root") -> Origin:
        folder, bare = place / "work", place / "served" / "org" / "bot"
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch", "main")
        found = {"root": made(folder, root), "left": made(folder, "left")}
        for branch in ("feature", "second"):
            git(folder, "checkout", "--quiet", "-b", branch, "main")
            made(folder, f"start of {branch}")
            found[branch] = made(folder, branch)
        origin = cls(folder, bare, found)
        found["older merge"] = origin.merged("left", "feature")
        git(folder, "checkout", "--quiet", "main")
        made(folder, "later")
        found["tip"] = made(folder, "tip")
        found["merge"] = origin.merged("tip", "feature")
        found["group"] = origin.merged("tip", "feature")
        found["second group"] = origin.merged("group", "second")
        refs = {"pull/7/merge": "merge", "tags/v1": "tip", "heads/gh-readonly-queue/main/pr-8": "second group"}
        for ref, name in refs.items():
            git(folder, "update-ref", f"refs/{ref}", found[name])
        git(folder, "clone", "--quiet", "--mirror", f"file://{folder}", str(bare))
        git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
        return origin

    def merged(self, into: str, change: str) -> str:
        git(self.folder, "checkout", "--quiet", "--detach", self.commits[into])
        git(self.folder, "merge", "--quiet", "--no-ff", "--message", f"{len(self.commits)}", self.commits[change])
        return git(self.folder, "rev-parse", "HEAD")

    def checkout(self, commit: str, branch: str | None, options: tuple[str, ...], name: str = "clone") -> Path:
        """A checkout as actions/checkout makes it: the history of everything, or the newest commits of one ref."""
        there = self.folder.parent / name
        there.mkdir()
        git(there, "init", "--quiet")
        git(there, "remote", "add", "origin", f"file://{self.bare}")
        everything = "+refs/heads/*:refs/remotes/origin/*"
        one = f"+{commit}:refs/remotes/{f'origin/{branch}' if branch else 'pull/7/merge'}"
        git(there, "fetch", "--quiet", "--no-tags", *options, "origin", *([one] if options else [everything]))
        if not options and branch is None:
            git(there, "fetch", "--quiet", "--no-tags", "origin", one)
        git(there, "checkout", "--quiet", "--detach", commit)
        return there

    @property
    def github(self) -> Github:
        return Github(_nobody, REPOSITORY, self.bare)

    def lineage(self, event: EventRights, here: Path) -> Lineage:
        return find_lineage(event, here, self.github)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin.create(tmp_path_factory.mktemp("origin"))


def planned(origin: Origin, event: str, sha: str, ref: str, payload: Mapping[str, Any] | None = None) -> EventRights:
    """The plan of an event."""
    variables = {
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SHA": origin.commits.get(sha, sha),
        "GITHUB_REF": ref,
        "GITHUB_BASE_REF": "main" if event == "pull_request" else "",
    }
    return plan(variables, {"repository": {"full_name": REPOSITORY, "default_branch": "main"}, **(payload or {})})


def pull_request(origin: Origin, sha: str = "merge", event: str = "pull_request", **of: str) -> EventRights:
    of = {"head": "feature", "base": "tip", **of}
    repository = {"full_name": REPOSITORY}
    payload = {
        "number": 7,
        "pull_request": {
            "number": 7,
            "head": {"sha": origin.commits[of["head"]], "ref": "feature", "repo": repository},
            # GitHub keeps the tip of the time at which the pull request was opened.
            "base": {"sha": origin.commits[of["base"]], "ref": "main", "repo": repository},
        },
    }
    return planned(origin, event, sha, "refs/pull/7/merge", payload)


def merge_group(origin: Origin) -> EventRights:
    of = {"base_ref": "refs/heads/main", "base_sha": origin.commits["group"]}
    payload = {"merge_group": {"head_sha": origin.commits["second group"], **of}}
    return planned(origin, "merge_group", "second group", "refs/heads/gh-readonly-queue/main/pr-8", payload)


# The table of the documentation

#: Commits of the two columns, by the words in the cells: of the commit that is checked out, or by name.
WORDS = {
    "the first parent: the base branch": "tip",
    "the first parent: the default branch": "tip",
    "the merge base": "left",
    "the merge base with the default branch": "left",
    "the queue before the group": "group",
    "the branch before the push": "left",
    "the same commit, in an earlier run": "HEAD",
    "the parent": "HEAD^",
}


@dataclass(frozen=True)
class Row:
    """A row of the table, for one of its events."""

    event: str
    about: str
    checkout: str
    start: str
    control: str

    def plan(self, origin: Origin) -> EventRights:
        tip = origin.commits["tip"]
        if self.event == "pull_request":
            # A job can begin after GitHub made a newer merge.
            return pull_request(origin, "older merge" if "refs/pull" in self.checkout else "merge", base="left")
        if self.event.startswith("pull_request_review"):
            return pull_request(origin, event=self.event, base="left")
        if self.event == "merge_group":
            return merge_group(origin)
        if "tag" in self.about:
            return planned(origin, self.event, "tip", "refs/tags/v1", {"before": "0" * 40, "created": True})
        if "another branch" in self.about:
            before = {"before": origin.commits["left"], "after": origin.commits["feature"]}
            return planned(origin, self.event, "feature", "refs/heads/feature", before)
        forced = {"forced": True, "before": origin.commits["feature"]}
        pushed = forced if "forced" in self.about else {"before": origin.commits["left"], "after": tip}
        return planned(origin, self.event, "tip", "refs/heads/main", pushed if self.event == "push" else {})

    def ref(self, event: EventRights, origin: Origin) -> tuple[str, str | None]:
        """The commit that is checked out, and its branch."""
        if self.checkout == "default":
            branch = (event.ref or "").removeprefix("refs/heads/")
            return event.github_sha or "", branch if branch != event.ref else None
        if "refs/pull" in self.checkout:
            return origin.commits["merge"], None
        return origin.commits["feature"], "feature"


def rows() -> Iterator[Row]:
    table = DOCS.read_text(encoding="utf-8").partition("## What each event does")[2].partition("\n\nThe commit")[0]
    for line in table.strip().splitlines()[2:]:
        events, checkout, _, start, control = (cell.strip() for cell in line.strip("|").split("|"))
        for event in re.findall(r"`(\w+)`", events):
            yield Row(event, events, checkout.strip("`").removeprefix("ref: "), start, control)


@pytest.mark.long
def test_the_table_of_events_holds_for_every_depth_of_the_checkout(origin: Origin) -> None:
    wrong, seen = [], 0
    for number, row in enumerate(rows()):
        event = row.plan(origin)
        if event.event == "pull_request_target":
            assert event.refused
            continue
        head, branch = row.ref(event, origin)
        known = {**origin.commits, "HEAD": head, "HEAD^": git(origin.bare, "rev-parse", f"{head}^1")}
        start = known[WORDS[row.start]]
        if "forced" in row.about:
            start = known["HEAD^"]
        control = start if row.control == "the same" else known[WORDS[row.control]]
        for depth, options in DEPTHS.items():
            there = origin.checkout(head, branch, options, f"row-{number}-{depth}")
            found = origin.lineage(event, there)
            clone = Clone.find(there)
            has = (
                found.start.commit if isinstance(found.start, Start) else found.start,
                control_commit(LocalHost(found.rule), clone, None)[0],
            )
            seen += 1
            if has != (start, control):
                names = {sha: name for name, sha in known.items()}
                wrong.append((row, depth, [names.get(sha, sha) for sha in (*has, start, control)]))
    assert not wrong
    assert seen >= 3 * 15


# Rules: the commit that judges is the one that is compared with


def test_a_commit_that_a_step_checked_out_is_never_believed_to_be_of_the_event(origin: Origin) -> None:
    """A step merges the pull request into an old commit of the base branch, whose rules are weaker."""
    there = origin.checkout(origin.commits["left"], None, (), "weaker")
    git(there, "merge", "--quiet", "--no-ff", "--message", "mine", origin.commits["feature"])
    found = origin.lineage(pull_request(origin, base="tip"), there)
    control, _ = control_commit(LocalHost(found.rule), Clone.find(there), None)
    assert control == origin.commits["left"]
    # The settings that only the base branch may have are still those of the event's commit.
    assert found.base == origin.commits["tip"]


def test_branches_of_the_checkout_cannot_choose_the_base(origin: Origin) -> None:
    head = origin.commits["feature"]
    there = origin.checkout(head, "feature", (), "moved")
    git(there, "update-ref", "refs/remotes/origin/main", head)
    found = origin.lineage(pull_request(origin, base="left"), there)
    assert found.start == Start(origin.commits["left"], "the merge base")


def test_an_event_judges_by_its_own_commit_what_it_did_not_bring(origin: Origin, tmp_path: Path) -> None:
    """A job with secrets that checks out a change may use only what the change could not permit itself."""
    tip, change = origin.commits["tip"], origin.commits["merge"]
    fork = Origin.create(tmp_path)
    git(fork.folder, "remote", "add", "origin", "https://github.example.org/mallory/bot.git")
    there = origin.checkout(change, None, (), "a change")
    own = origin.checkout(tip, "main", ("--depth=1",), "the commit of the event")
    comment = {"issue": {"number": 7, "pull_request": {"url": "https://api.github.example.org/pulls/7"}}}
    review = {"pull_request": {"number": 7, "base": {"sha": tip, "ref": "main"}}}
    main, merge = "refs/heads/main", "refs/pull/7/merge"
    table: list[tuple[str, str, str, dict[str, Any], Path, str | None]] = [
        *((event, "tip", main, {}, there, tip) for event in ("repository_dispatch", "schedule", "workflow_run")),
        *((event, "tip", main, {}, fork.folder, tip) for event in ("workflow_run", "workflow_dispatch", "push")),
        ("workflow_dispatch", "tip", main, {}, own, None),
        ("push", "tip", "refs/tags/v1", {}, own, None),
        ("push", "merge", "refs/heads/feature", {}, there, None),
        ("issue_comment", "tip", main, comment, there, tip),
        ("issue_comment", "tip", main, comment, own, tip),
        # The commit of these events is the change itself.
        ("pull_request_review", "merge", merge, review, there, tip),
        ("pull_request_review", "merge", merge, {}, there, None),
    ]
    for event, sha, ref, payload, here, base in table:
        found = origin.lineage(planned(origin, event, sha, ref, payload), here)
        assert found.base == base, (event, ref, here)
    for here in (there, own, fork.folder, tmp_path):
        assert origin.lineage(merge_group(origin), here).base == origin.commits["group"]


@pytest.mark.long
def test_a_checkout_without_the_commit_of_the_event_is_told(origin: Origin, tmp_path: Path) -> None:
    commits = origin.commits
    stepped = origin.checkout(commits["merge"], None, ("--depth=1",), "a step commits")
    for number in range(2):
        git(stepped, "commit", "--quiet", "--allow-empty", "--message", f"of a step {number}")
    table = {
        # The pull request has the head `feature`. A job can begin after GitHub made a newer merge.
        "merge": (pull_request(origin), False),
        "merge ": (pull_request(origin, "older merge"), False),
        "feature": (pull_request(origin), False),
        "group": (pull_request(origin), False),
        "tip": (pull_request(origin), True),
        "second": (pull_request(origin), True),
        "left": (pull_request(origin), True),
        "second group": (merge_group(origin), False),
    }
    table |= {f"{name} ": (merge_group(origin), True) for name in ("tip", "group", "second")}
    main = "refs/heads/main"
    table |= {
        " feature": (planned(origin, "workflow_dispatch", "tip", main), True),
        " tip": (planned(origin, "workflow_dispatch", "tip", main), False),
        " merge": (planned(origin, "workflow_dispatch", "tip", main), False),
    }
    for depth, options in DEPTHS.items():
        for name, (event, is_stray) in table.items():
            there = origin.checkout(commits[name.strip()], None, options, f"{depth} of {name}.")
            assert origin.lineage(event, there).is_stray is is_stray, (event.event, name, depth)
    # What GitHub does not know is not certain.
    assert not origin.lineage(pull_request(origin), stepped).is_stray


# What is unknown is told


def test_what_cannot_be_known_is_told_with_the_fix(origin: Origin, tmp_path: Path) -> None:
    shallow = origin.checkout(origin.commits["tip"], "main", ("--depth=1",), "local merge")
    git(shallow, "commit", "--quiet", "--allow-empty", "--message", "of a step")
    pushed = planned(origin, "issue_comment", "tip", "refs/heads/main")
    tagged = replace(pushed, ref="refs/tags/v1", baseline_branch=None)
    rootless = planned(origin, "push", "root", "refs/heads/main", {"created": True, "before": "0" * 40})
    root = origin.checkout(origin.commits["root"], "main", (), "root")
    wrong = replace(pushed, github_sha="f" * 40)
    table = {
        "set `fetch-depth: 0` of actions/checkout": (pushed, shallow),
        "name a run with the input baseline": (tagged, shallow),
        "there is no commit before": (rootless, root),
        "the commit that is evaluated is unknown": (wrong, tmp_path),
        "the event names no commit": (replace(wrong, github_sha=None, commit=None), tmp_path),
    }
    for said, (event, here) in table.items():
        found = origin.lineage(event, here)
        assert isinstance(found.start, str), said
        assert said in found.start


def test_a_checkout_of_another_repository_is_no_claim_about_this_one(origin: Origin, tmp_path: Path) -> None:
    elsewhere = Origin.create(tmp_path, "another root, or commits of one second would be the same")
    there = elsewhere.checkout(elsewhere.commits["feature"], "feature", ())
    git(there, "remote", "set-url", "origin", "https://github.example.org/org/other.git")
    found = origin.lineage(pull_request(origin), there)
    assert (found.start, found.clone) == (Start(origin.commits["tip"], "the base commit"), None)


# The states of a branch


def test_the_states_of_a_branch_are_proven_by_their_contents(tmp_path: Path) -> None:
    origin = Origin.create(tmp_path)
    there = origin.checkout(origin.commits["tip"], "main", ())
    clone = Clone.find(there)
    states = git(there, "rev-list", "--first-parent", origin.commits["tip"]).split()
    assert clone.first_parents("f" * 40) == ()
    assert list(clone.first_parents(origin.commits["tip"])) == states
    # Another commit in the place of the parent, as git would show it.
    git(there, "replace", "--graft", states[1], origin.commits["feature"])
    assert list(clone.first_parents(origin.commits["tip"])) == states
    forged = git(there, "rev-parse", f"refs/replace/{states[1]}")
    source, target = (there / ".git" / "objects" / name[:2] / name[2:] for name in (forged, states[1]))
    git(there, "replace", "--delete", states[1])
    _unpacked(there)
    target.unlink(missing_ok=True)
    target.write_bytes(source.read_bytes())
    assert list(clone.first_parents(origin.commits["tip"])) == states[:1]


def _unpacked(there: Path) -> None:
    """Write every object of a clone into a separate file."""
    for pack in (there / ".git" / "objects" / "pack").glob("*.pack"):
        moved = there / pack.name
        pack.rename(moved)
        moved.with_suffix(".idx").unlink(missing_ok=True)
        pack.with_suffix(".idx").unlink()
        with moved.open("rb") as file:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=there, stdin=file, check=True)


def test_distances(origin: Origin) -> None:
    there = origin.checkout(origin.commits["merge"], None, (), "distances")
    clone = Clone.find(there)
    known = origin.commits
    table = {
        ("left", "tip"): 2,
        ("tip", "tip"): 0,
        ("left", "merge"): 5,
        ("feature", "tip"): None,
        ("tip", "left"): None,
    }
    for (one, other), expected in table.items():
        assert clone.distance(known[one], known[other]) == expected, (one, other)
    with pytest.raises(ControlError):
        clone.distance("f" * 40, known["tip"])


def test_the_rules_of_a_merge_are_those_of_its_first_parent_whatever_the_event_claims(origin: Origin) -> None:
    for depth, options in DEPTHS.items():
        there = origin.checkout(origin.commits["merge"], None, options, f"rules {depth}")
        found = origin.lineage(pull_request(origin, base="left"), there)
        control, _ = control_commit(LocalHost(found.rule), Clone.find(there), None)
        assert (found.base, control) == (origin.commits["tip"],) * 2


def test_a_pull_request_that_was_merged_since_is_compared_with_what_it_left(tmp_path: Path) -> None:
    origin = Origin.create(tmp_path)
    git(origin.bare, "update-ref", "refs/heads/main", origin.commits["merge"])
    there = origin.checkout(origin.commits["feature"], "feature", ("--depth=1",))
    found = origin.lineage(pull_request(origin), there)
    assert found.start == Start(origin.commits["left"], "the merge base")
