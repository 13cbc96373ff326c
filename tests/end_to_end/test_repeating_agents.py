"""An agent that always answers the same: what closed the gate is what the reports tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.support import case, python_agent, write_suite

_RIGHT = 'def reply(request):\n    return request["input"]\n'
_ONE_WRONG = 'def reply(request):\n    return "wrong" if request["case"] == "3" else request["input"]\n'


def test_how_sure_tells_the_proof_and_asks_for_no_more_runs(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(str(number)) for number in range(8)]
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    (tmp_path / ".gitignore").write_text("reports\n__pycache__\n", encoding="utf-8")
    write_suite(tmp_path, cases, agent=python_agent(tmp_path, _RIGHT))
    commit(tmp_path)
    options = ("--iterations", "2", "--fail-on", "regressions,unproven")
    assert command("run", *options, "--out", "reports/main").status == 0

    python_agent(tmp_path, _ONE_WRONG)
    commit(tmp_path)
    ended = command("run", *options, "--baseline", "reports/main", "--out", "reports/here")

    assert ended.status == 1, ended.text
    comment = (tmp_path / "reports" / "here" / "comment.md").read_text(encoding="utf-8")
    proof = re.compile(r"fails 8 of 8 passes here and 0 of 8 on main \(\w+\) beside it")
    for report in (" ".join(ended.out.split()), comment.replace("&#8203;", "")):
        assert proof.search(report), report
        assert "baseline runs" not in report
