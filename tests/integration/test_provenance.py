"""Commit and branch of a run on a laptop, from real git repositories."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tests.git_server import commit, git

from agenteval.run.git import Provenance, provenance


def test_what_git_knows(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    assert provenance({}, folder) == Provenance()

    git(folder, "init", "--quiet", "--initial-branch=topic/größer")
    agent = folder / "agent.py"
    agent.write_text("good")
    branch = "refs/heads/topic/größer"
    assert provenance({}, folder) == Provenance(ref=branch)

    head = commit(folder)
    clean = Provenance(head, branch)
    assert provenance({}, folder) == clean
    (folder / "reports").mkdir()
    (folder / "reports/results.json").write_text("{}")
    assert provenance({}, folder / "reports") == clean

    uncommitted = replace(clean, uncommitted=True)
    agent.write_text("bad")
    assert provenance({}, folder / "reports") == uncommitted
    git(folder, "add", "agent.py")
    assert provenance({}, folder) == uncommitted
    git(folder, "reset", "--quiet", "--hard")
    assert provenance({}, folder) == clean
    agent.unlink()
    assert provenance({}, folder) == uncommitted
    git(folder, "checkout", "--quiet", "agent.py")
    git(folder, "mv", "agent.py", "other.py")
    assert provenance({}, folder) == uncommitted
    git(folder, "reset", "--quiet", "--hard")

    git(folder, "checkout", "--quiet", "-b", "one\u2028line\x85")
    assert provenance({}, folder) == Provenance(head, "refs/heads/one\u2028line\x85")
    git(folder, "checkout", "--quiet", "-b", os.fsdecode(b"caf\xe9"))
    assert provenance({}, folder) == Provenance(head, "refs/heads/caf\N{REPLACEMENT CHARACTER}")

    git(folder, "checkout", "--quiet", "--detach")
    assert provenance({}, folder) == Provenance(head)


def test_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(4):
        (folder / f"{number}.py").write_text("good")
    head = commit(folder)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {ran}\ncat\n")
    program.chmod(0o755)
    drivers = ("bad", "a=b", "a.clean", "Ä")
    (folder / ".git/info/attributes").write_text("".join(f"{n}.py filter={d}\n" for n, d in enumerate(drivers)))
    for driver in drivers:
        git(folder, "config", f"filter.{driver}.clean", f"{program} {driver}")
        git(folder, "config", f"filter.{driver}.required", "true")
    git(folder, "config", "core.fsmonitor", str(program))
    for number in range(4):
        # The same content at another time, so git has to compare it.
        os.utime(folder / f"{number}.py", (1, 1))
    assert provenance({}, folder) == Provenance(head, "refs/heads/main")
    assert not ran.exists()
    # git alone runs all of them.
    git(folder, "status")
    assert {line.split()[1] for line in ran.read_text().splitlines()} >= set(drivers)
