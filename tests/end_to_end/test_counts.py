"""Every outlet counts the same cases."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import yaml
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.support import case, python_agent, write_suite

AGENT = """
def reply(request):
    if request["case"].startswith("error"):
        raise RuntimeError("no model")
    return request["input"]
"""


def project(directory: Path, kinds: tuple[str, ...]) -> None:
    """A suite with a case of each kind, those with the letter q in quarantine, and a case that passes."""
    expected = {"failed": "other", "skipped": None}
    names = ["passed", *kinds]
    cases = [case(f"{name} {n}", "x", expected.get(name.split()[0], "x")) for n, name in enumerate(names)]
    write_suite(directory, cases)
    gate = {"quarantine": [{"case": "*q*", "until": date(2999, 1, 1), "reason": "known"}], "max_error_rate": 0.01}
    config = {"agents": {"default": python_agent(directory, AGENT)}, "gate": gate}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def test_all_outlets_count_the_same_broken_cases(tmp_path: Path, command: Command) -> None:
    project(tmp_path, ("passed", "passed q", "passed", "failed"))
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    assert command("run", "--iterations", "8", "--fail-on", "none", "--out", "before").status == 0
    suite = yaml.safe_load((tmp_path / "agent.yaml").read_text(encoding="utf-8"))
    answers = (tmp_path / "agent.py").read_text(encoding="utf-8")
    broken = answers.replace(
        "return request", 'return "no" if request["case"] in ("passed 1", "passed q 2") else request'
    )
    (tmp_path / "agent.py").write_text(broken, encoding="utf-8")
    suite["test_cases"] += [case("new 1"), case("new 2", "hello", "other")]
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    ended = command("run", "--iterations", "8", "--baseline", "before", "--fail-on", "regressions")
    assert ended.status == 1, ended.text
    reports = tmp_path / "agenteval-report"
    html = re.sub(r"<[^>]*>", "", (reports / "report.html").read_text(encoding="utf-8"))
    texts = [
        ended.out,
        html,
        *((reports / name).read_text(encoding="utf-8") for name in ("summary.md", "comment.md")),
    ]
    said = [re.findall(r"(\d+ of \d+) cases? broke", text) for text in texts]
    assert all(said), said
    assert {amount for found in said for amount in found} == {"1 of 4"}
