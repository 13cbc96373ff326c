"""The gate over a history of merges: the jobs of pull requests and of the base branch, with a noisy agent."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.gated_repository import BAD, GATE, GOOD, Repository
from tests.git_server import commit, git
from tests.support import verdict_of

from agenteval.results.comparison import ComparedMetric

# 8 and 19 of 19 cases pass without noise.
FEW, MANY = 10, 17


@pytest.fixture
def bad(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose agent answers most questions wrong."""
    return Repository.create(tmp_path / "bot", command, monkeypatch, ranking=BAD)


@pytest.fixture
def good(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose agent answers all questions right, but for its noise."""
    return Repository.create(tmp_path / "bot", command, monkeypatch, ranking=GOOD)


# A merged improvement is not taken back unnoticed


@pytest.mark.long
@pytest.mark.parametrize("is_proven", [True, False], ids=["proven", "not proven"])
@pytest.mark.parametrize("old_runs", [1, 3, 10])
def test_taking_a_merged_improvement_back_is_red(bad: Repository, old_runs: int, is_proven: bool) -> None:
    for _ in range(old_runs):
        bad.base_job()
    assert bad.passed() <= FEW
    bad.rank(GOOD)
    bad.propose()
    assert bad.pull_request_job().status == 0
    bad.merge()
    ended = bad.base_job(*(() if is_proven else ("--config", bad.settings({**GATE, "confirm": "off"}))))
    assert ended.status == 0, ended.text
    assert bad.passed() >= MANY
    merged = bad.comparison(bad.baseline)
    assert merged.verdict == ("improved" if is_proven else "unchanged")
    pool = bad.results(bad.baseline).pool
    # An epoch begins only with a proof.
    epochs = {entry.epoch for entry in pool}
    tip, first = (git(bad.folder, "rev-parse", name) for name in ("HEAD", "HEAD~"))
    assert epochs == ({tip} if is_proven else {first})
    bad.rank(BAD)
    bad.propose()
    ended = bad.pull_request_job()
    assert ended.status == 1, ended.text
    found = bad.comparison()
    assert (found.verdict, found.control) == ("regressed", tip)
    assert bad.passed("reports/pull-request") <= FEW


# An improvement is proven on request


@pytest.mark.parametrize("ranking", [GOOD, BAD])
def test_on_request_an_improvement_of_a_change_is_proven(bad: Repository, ranking: str) -> None:
    bad.base_job()
    bad.rank(ranking)
    bad.propose()
    ended = bad.pull_request_job("--prove")
    assert ended.status == 0, ended.text
    found = bad.comparison()
    assert found.requested is not None
    assert found.requested.by == "--prove"
    page = bad.folder / "reports" / "pull-request"
    comment, summary = ((page / name).read_text(encoding="utf-8") for name in ("comment.md", "summary.md"))
    if ranking == GOOD:
        base = git(bad.folder, "rev-parse", "main")
        assert (found.verdict, found.control) == ("improved", base)
        assert found.requested.reason.endswith(f"side by side with {base[:7]} on request of --prove")
        assert "rose, nothing broke or fell" in comment.splitlines()[0]
    else:
        assert (found.verdict, found.cost, found.requested.verdict) == ("unchanged", None, "unchanged")
    for text in (comment, summary, ended.text):
        assert "--prove" in html.unescape(text).replace("\u200b", "")
    # A change begins no epoch.
    assert bad.results().epoch is None


# A limit ends the confirmation


@pytest.mark.parametrize(
    ("limits", "calls", "why"),
    [
        (
            {"runs": 0},
            0,
            "'max_confirmation: {runs: 0}' ended the confirmation (0 calls were made, 19 more are needed; one run "
            "of the suite has 57)",
        ),
        (
            {"runs": 1},
            57,
            "'max_confirmation: {runs: 1}' ended the confirmation (57 calls were made, 114 more are needed; one run "
            "of the suite has 57)",
        ),
        (
            {"calls": 100},
            57,
            "'max_confirmation: {calls: 100}' ended the confirmation (57 calls were made, 114 more are needed)",
        ),
    ],
    ids=["no run", "one run", "calls"],
)
def test_a_suspicion_that_a_limit_leaves_open_is_unproven(
    good: Repository, limits: dict[str, int], calls: int, why: str
) -> None:
    good.configure({**GATE, "max_confirmation": limits})
    commit(good.folder)
    good.base_job()
    good.rank(BAD)
    good.propose()
    ended = good.pull_request_job()
    assert ended.status == 3, ended.text
    results, found = good.results(), good.comparison()
    assert results.gate is not None
    assert (results.gate.verdict, results.gate.exit_status, found.verdict) == ("unproven", 3, "unproven")
    assert (found.cost.calls if found.cost else 0) == calls
    (point,) = found.unproven
    assert (point.what, point.mended_by) == ("confirmation", "outside")
    assert point.details[-1].endswith(f"{why}; raise it to finish")
    assert "looked worse" in point.text
    assert verdict_of(ended.out).startswith("unproven: ")
    for outlet in (ended.out, _report(good, "comment.md"), _report(good, "summary.md")):
        assert why in outlet


# A base commit whose agent cannot run


def _without_git(repository: Repository) -> str:
    repository.variables["PATH"] = "/nowhere"
    return "git is not installed"


def _with_an_ignored_file(repository: Repository) -> str:
    # The first runs had the file; the directory of the control has only what the commit contains.
    return "No module named 'local_settings'"


def _in_a_shallow_clone(repository: Repository) -> str:
    head = git(repository.folder, "rev-parse", "HEAD")
    (repository.folder / ".git" / "shallow").write_text(f"{head}\n", encoding="utf-8")
    git(repository.folder, "update-ref", "-d", "refs/heads/main")
    git(repository.folder, "reflog", "expire", "--expire=now", "--all")
    git(repository.folder, "prune", "--expire=now")
    return "is not in this clone"


@pytest.mark.long
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("kill", [_without_git, _with_an_ignored_file, _in_a_shallow_clone])
def test_without_the_base_commits_agent_earlier_runs_decide_or_nothing_does(
    good: Repository, kill: Callable[[Repository], str], runs: int
) -> None:
    if kill is _with_an_ignored_file:
        good.import_an_ignored_file()
    for _ in range(runs):
        assert good.base_job().status == 0
    good.rank(BAD)
    good.propose()
    what_to_do = kill(good)
    ended = good.pull_request_job()
    found = good.comparison()
    reason = found.policy["reason"]
    if runs < 3:
        assert (ended.status, found.verdict) == (3, "unproven"), ended.text
        assert _in_a_sentence(what_to_do) in reason
        assert "without it, 3 earlier runs are needed, and there is 1" in reason
        assert _in_a_sentence(what_to_do) in ended.out
    else:
        assert (ended.status, found.verdict, found.stage) == (1, "regressed", "earlier-runs"), ended.text
        assert "compared with earlier runs, so drift cannot be told from regression" in reason
    (warning,) = (line for line in ended.out.splitlines() if "cannot run beside the change" in line)
    assert what_to_do in warning
    assert found.control is None


def _in_a_sentence(message: str) -> str:
    """A message in the words of a comparison, which are without markup."""
    return message.replace("`", "'")


def _report(repository: Repository, name: str, out: str = "reports/pull-request") -> str:
    """The text of a report in Markdown, without its escapes."""
    text = (repository.folder / out / name).read_text(encoding="utf-8")
    return html.unescape(text).replace("\\", "").replace("\u200b", "")


# Every outlet has the numbers and the words of the test that decided


@pytest.mark.parametrize("outcome", [pytest.param("clean", marks=pytest.mark.long), "mean", "case", "rise"])
def test_numbers_and_words_agree_in_every_outlet(good: Repository, outcome: str) -> None:
    if outcome == "rise":
        good.rank(BAD)
        commit(good.folder)
    good.base_job()
    if outcome == "case":
        page = good.folder / "docs" / "payment.md"
        page.write_text(page.read_text(encoding="utf-8").replace(", but no cash.", ", and cash."), encoding="utf-8")
    elif outcome != "clean":
        good.rank(GOOD if outcome == "rise" else BAD)
    good.propose()
    if outcome == "rise":
        good.merge()
        ended, out = good.base_job(), good.baseline
    else:
        ended, out = good.pull_request_job(), "reports/pull-request"
    verdict = {"clean": "unchanged", "rise": "improved"}.get(outcome, "regressed")
    status = 1 if verdict == "regressed" else 0
    results, found = good.results(out), good.comparison(out)
    assert (ended.status, found.verdict) == (status, verdict), ended.text
    assert results.gate is not None
    proven = [_agrees(metric, verdict, found.policy["reason"]) for metric in found.metrics]
    assert any(proven) == (outcome in {"mean", "rise"})
    if found.looks:
        last = found.looks[-1]
        of_look = {metric.id: metric for metric in found.metrics}[last.metric]
        assert (last.p, last.limit) == (of_look.p, of_look.limit)
        assert last.difference == pytest.approx(of_look.difference)
        assert last.p == min(metric.p for metric in found.metrics if metric.p is not None)
    for proof in found.proofs:
        assert proof.proven == (proof.q is not None and proof.limit is not None and proof.q <= proof.limit)
        change = next(item.change for item in found.cases if item.id == proof.id)
        assert (change == verdict) == proof.proven
    assert any(proof.proven for proof in found.proofs) == (outcome == "case")
    said = f"{results.gate.verdict}: {results.gate.headline}"
    assert said.startswith(verdict_of(ended.out).removesuffix("…"))
    icon = "❌" if status else "✅"
    summary, comment = (_report(good, name, out) for name in ("summary.md", "comment.md"))
    assert summary.startswith(f"### {icon} ")
    assert ("#### Why the gate fails" in summary) == bool(status)
    assert comment.startswith(f"### {icon} ")
    assert ("Merging is blocked" in comment) == bool(status)


def _agrees(metric: ComparedMetric, verdict: str, reason: str) -> bool:
    """Check the numbers of a metric against each other and its words; return whether a change is proven."""
    assert metric.difference == pytest.approx(metric.current - metric.baseline)
    proven = metric.verdict == verdict != "unchanged"
    sign = 1 if verdict == "improved" else -1
    if metric.runs_a_side:
        assert metric.p is not None
        assert metric.limit is not None
        assert metric.interval is not None
        low, high = metric.interval
        assert low <= metric.difference <= high
        nearest = low if sign > 0 else high
        assert proven == (metric.p <= metric.limit) == (sign * nearest > 0)
        assert ("not proven" in metric.reason) == (not proven)
    if not proven:
        assert "fell" not in metric.reason
        assert metric.bound is None or metric.bound < (metric.earlier or 0)
        return False
    points = f"{100 * abs(metric.difference):.1f}".removesuffix(".0")
    assert f"it scored {points} points {'more' if sign > 0 else 'less'} (" in metric.reason
    assert f"needed ≤ {metric.limit:g})" in metric.reason
    assert metric.reason in reason
    return True
