"""Reporters of other packages, found by their entry points and run by the real command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.mistakes import shown
from tests.support import Ended, agenteval, environment

_SUITE = """\
name: greeter
agent: greeter
model: {provider: openai, name: gpt-4o}
instructions: {inline: hi}
evaluations: {metrics: [{type: standard, metric: f1_score, threshold: 0.5}]}
test_cases: [{name: hello, input: Hi, ground_truth: Hello}, {name: bye, input: Bye, ground_truth: Goodbye}]
"""
_REPLIES = '{"case": "hello", "response": "Hello"}\n{"case": "bye", "response": "What?"}\n'
_REPORTER = """\
import json
from agenteval.report.parts import ReportFile

def render(report):
    cases = [[case.name, case.status] for suite in report.results.suites for case in report.cases_of(suite)]
    content = json.dumps({"passed": report.passed, "cases": cases})
    yield ReportFile("ctrf.json", content, ("a note of ctrf",))

def folder(report):
    yield ReportFile("../escaped.json", "{}")

def taken(report):
    yield ReportFile("REPORT.html", "mine")

def broken(report):
    raise KeyError("no such key")

def text(report):
    yield "ctrf.json"

def leave(report):
    raise SystemExit(0)

constant = 7
"""
_NAMES = ("render", "folder", "taken", "broken", "text", "leave", "constant")

Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command beside a package ``acme`` with reporters, in a project that asks for some of them."""
    site = tmp_path / "site"
    info = site / "acme_evals-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_reporters.py").write_text(_REPORTER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.0\n")
    entries = "\n".join(f"acme.{name} = acme_reporters:{name}" for name in _NAMES)
    (info / "entry_points.txt").write_text(f"[agenteval.reporters]\nacme.missing = acme_reporters:none\n{entries}\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent.yaml").write_text(_SUITE)
    (project / "replies.jsonl").write_text(_REPLIES)

    def command(reports: str, allowed: str) -> Ended:
        (project / "agenteval.yaml").write_text(f"iterations: 1\nreports: {reports}\n")
        arguments = ["run", "agent.yaml", "--agent", "replay:replies.jsonl", "--out", "out"]
        return agenteval(*arguments, cwd=project, env=environment(PYTHONPATH=str(site), AGENTEVAL_PLUGINS=allowed))

    return command


def test_a_reporter_of_another_package_writes_its_file(run: Run, tmp_path: Path) -> None:
    done = run("[acme.render]", "acme.render")
    assert done.status == 1, done.err
    content = json.loads((tmp_path / "project" / "out" / "ctrf.json").read_text())
    assert content == {"passed": False, "cases": [["hello", "passed"], ["bye", "failed"]]}
    assert "warning: acme.render: a note of ctrf" in done.out


@pytest.mark.parametrize(
    ("reports", "allowed", "message"),
    [
        (
            "[acme.render]",
            "",
            "agenteval.yaml:2: reports[0]: the reporter 'acme.render' runs in agenteval's process only where "
            "AGENTEVAL_PLUGINS names it; set AGENTEVAL_PLUGINS=acme.render if you trust its package",
        ),
        (
            "[acme.rendr]",
            "acme.render",
            "no installed package has a reporter 'acme.rendr'; did you mean 'acme.render'?",
        ),
        ("[junit]", "", "'junit' is built in and always written; list reporters of other packages only"),
        ("[acme.missing]", "acme.missing", "acme.missing: cannot be imported from acme-evals 1.0: AttributeError"),
        ("[acme.constant]", "acme.constant", "the reporter 'acme.constant' is not a function"),
    ],
)
def test_a_reporter_that_cannot_run_is_an_error_of_the_configuration(
    run: Run, tmp_path: Path, reports: str, allowed: str, message: str
) -> None:
    done = run(reports, allowed)
    assert done.status == 2
    (mistake,) = shown(done.err)
    assert mistake.says(message), done.err
    assert mistake.place == "agenteval.yaml:2"
    assert "^ reports[]\n" in mistake.text
    assert not (tmp_path / "project" / "out" / "results.json").exists()


def test_reporters_that_fail_lose_no_other_report(run: Run, tmp_path: Path) -> None:
    names = ["acme.folder", "acme.taken", "acme.broken", "acme.text", "acme.leave", "acme.render"]
    done = run(f"[{', '.join(names)}]", ",".join(names))
    assert done.status == 3
    for line in (
        "reports: acme.folder: '../escaped.json' is not a plain file name; use letters",
        "reports: acme.taken: 'REPORT.html' already exists; choose another name",
        "reports: acme.broken: KeyError: 'no such key'",
        "reports: acme.text: it yields str instead of ReportFile",
        "reports: acme.leave: SystemExit: 0",
    ):
        assert any(mistake.says(line) for mistake in shown(done.err)), done.err
    assert "Traceback" not in done.err
    out = tmp_path / "project" / "out"
    assert {"results.json", "junit.xml", "comment.md", "summary.md", "badge.json", "trend.json", "ctrf.json"} <= {
        path.name for path in out.iterdir()
    }
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert not (tmp_path / "project" / "escaped.json").exists()
