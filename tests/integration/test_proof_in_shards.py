"""A merged run is proven in shards: each makes the passes of its cases, and their merge decides as one job would."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.integration.gated_suite import Project, names
from tests.support import case, python_agent, write_suite

from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.store import read_results

SHARDS = 3
PAIRS = {"pairs": 4}


@pytest.fixture
def project(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository whose first commit answers right."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    found = Project(folder, command, monkeypatch)
    found.write(cases=9, gate=PAIRS)
    (folder / ".gitignore").write_text("base-*\nout-*\n__pycache__\n", encoding="utf-8")
    commit(folder)
    return found


def out(command: Command, *arguments: str, status: int = 0) -> str:
    ended = command(*arguments)
    assert ended.status == status, ended.text
    return ended.text


def evaluated(command: Command, baseline: str) -> Results:
    parts = [f"out-{number}" for number in range(1, SHARDS + 1)]
    for number, part in enumerate(parts, start=1):
        shard = ("--shard", f"{number}/{SHARDS}")
        out(command, "run", "--quiet", "--iterations", "3", *shard, "--out", part, "--baseline", baseline)
    command("merge", *parts, "-o", "out-merged", "--baseline", baseline)
    return read_results(Path("out-merged"))


def proven(project: Project) -> tuple[int, Results, list[set[str]]]:
    """What the shards of a proof come to, with the exit status and the cases that each of them asked."""
    parts = [f"out-proof-{number}" for number in range(1, SHARDS + 1)]
    asked = []
    for number, part in enumerate(parts, start=1):
        project.log.unlink(missing_ok=True)
        text = out(project.command, "prove", "out-merged", "--shard", f"{number}/{SHARDS}", "--out", part)
        assert f"shard {number} of {SHARDS} of the proof; agenteval merge decides" in text
        asked.append({item.case for item in project.asked()})
    ended = project.command("merge", *reversed(parts), "-o", "out-proven")
    return ended.status, read_results(Path("out-proven")), asked


def compared(results: Results) -> Comparison:
    assert results.comparison is not None
    return results.comparison


def calls(results: Results) -> int:
    cost = compared(results).cost
    assert cost is not None
    return cost.calls


def test_the_shards_of_a_proof_run_their_cases_alone_and_decide_as_one_job(project: Project) -> None:
    baseline = project.past(2, "--iterations", "3")
    project.write(broken=names(0, 4), cases=9, gate=PAIRS)
    commit(project.folder)
    merged = evaluated(project.command, baseline)
    assert merged.can_be_proven
    status, sharded, asked = proven(project)
    ended = project.command("prove", "out-merged", "--out", "out-alone")
    alone = read_results(Path("out-alone"))
    assert (status, sharded.gate) == (ended.status, alone.gate)
    assert (status, compared(sharded).state) == (1, "proven")
    assert compared(sharded).proofs == compared(alone).proofs
    assert sharded.run.shard is None
    assert not sharded.can_be_proven
    # Every call counts once.
    assert read_results(Path("out-proof-1")).summary.usage == merged.summary.usage
    # The shards cannot stop early.
    assert calls(sharded) >= calls(alone) > 0
    assert [case.id for _, case in sharded.cases()] == [case.id for _, case in merged.cases()]
    assert sorted(name for cases in asked for name in cases) == sorted(set.union(*asked))
    assert {f"c{number:02}" for number in range(4)} <= set.union(*asked)


def test_what_a_shard_of_a_proof_lacks_is_said(project: Project) -> None:
    baseline = project.past(2, "--iterations", "3")
    project.write(broken=names(3, 4), cases=9, gate=PAIRS)
    commit(project.folder)
    evaluated(project.command, baseline)
    for number in (1, 3):
        out(project.command, "prove", "out-merged", "--shard", f"{number}/3", "--out", f"out-proof-{number}")
    text = out(project.command, "merge", "out-proof-1", "out-proof-3", "-o", "out-proven", status=3)
    assert "shard 2 of 3 is missing" in text
    text = out(project.command, "merge", "out-proof-1", "out-1", "out-proof-3", "-o", "out-proven", status=2)
    assert "with passes of another run than out-proof-1/results.json\n --> out-1/results.json" in text
    text = out(project.command, "prove", "out-proof-1", status=2)
    assert "there is nothing to prove" in text


def test_a_base_that_cannot_run_is_said_by_the_merge(project: Project) -> None:
    (project.folder / "agent.py").write_text("import of_another_machine\n", encoding="utf-8")
    commit(project.folder)
    project.write(cases=9, gate=PAIRS)
    baseline = project.past_as_committed(2)
    project.write(broken=names(3, 4), cases=9, gate=PAIRS)
    commit(project.folder)
    evaluated(project.command, baseline)
    status, sharded, _ = proven(project)
    alone = project.command("prove", "out-merged", "--out", "out-alone")
    assert (status, compared(sharded).state) == (alone.status, "unproven")
    assert "of_another_machine" in compared(sharded).why


def test_results_of_another_commit_are_not_proven(project: Project) -> None:
    baseline = project.past(1)
    project.write(broken=names(0, 9), cases=9, gate=PAIRS)
    commit(project.folder)
    project.command("run", "--out", "out-whole", "--baseline", baseline)
    git(project.folder, "checkout", "--quiet", "HEAD~1")
    assert "and the working directory has " in out(project.command, "prove", "out-whole", status=2)


# An agent that answers some cases wrong now and then.
NOISY = """
import random
BROKEN = {broken!r}
def reply(request):
    wrong = request["case"] in BROKEN or random.random() < (0.08 if request["case"] > "c05" else 0.0)
    return "wrong" if wrong else request["input"]
"""
COMMITS = 12


@pytest.mark.long
def test_harmless_and_broken_commits_in_shards(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    def write(broken: str = "") -> None:
        cases = [case(f"c{number:02}") for number in range(12)]
        agent = python_agent(project.folder, NOISY.format(broken=broken.split()))
        write_suite(project.folder, cases, agent=agent)

    write()
    project.configure({"fail_on": ["regressions", "unproven"], "max_error_rate": 1})
    commit(project.folder)
    baseline = project.past(3, "--iterations", "3", "--fail-on", "none")
    tally = {"harmless": [0, 0, 0], "broken": [0, 0, 0]}
    for number in range(COMMITS):
        for kind, counts in tally.items():
            git(project.folder, "checkout", "--quiet", "-B", f"{kind}-{number}", "main")
            # Of the cases that always pass: one that fails now and then on main too may not be suspicious.
            write(f"c{number % 6:02}" if kind == "broken" else "")
            (project.folder / "notes.txt").write_text(f"{kind} {number}\n", encoding="utf-8")
            commit(project.folder)
            merged = evaluated(project.command, baseline)
            status = merged.gate.exit_status if merged.gate else 0
            counts[0] += merged.can_be_proven
            if merged.can_be_proven:
                status, found, _ = proven(project)
                counts[2] += compared(found).state == "unproven"
            counts[1] += status != 0
    with capsys.disabled():
        for kind, (asked, red, unproven) in tally.items():
            print(f"{kind}: {asked} of {COMMITS} proven in shards, {red} red, {unproven} unproven")
    assert tally["harmless"][1] <= 1
    assert tally["broken"][1] == COMMITS
