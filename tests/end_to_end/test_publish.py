"""``agenteval publish`` without a GitHub: what it would send, and what keeps it from sending."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
COMMIT = "a" * 40


@pytest.fixture
def report(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reports of a run in which cases failed."""
    shutil.copytree(QUICKSTART, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("QUICKSTART_RANKING", "first-match")
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_REPOSITORY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    # Whoever asks GitHub all the same fails.
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    assert command("run", "agent.yaml", "--iterations", "1", "--quiet").status == 1
    return tmp_path / "agenteval-report"


def of_a_pull_request(report: Path) -> None:
    file = report / "results.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    results["run"] |= {"repository": "acme/widgets", "commit": COMMIT, "ref": "refs/pull/7/merge"}
    file.write_text(json.dumps(results), encoding="utf-8")


def test_a_dry_run_prints_every_call_with_its_body(report: Path, command: Command) -> None:
    of_a_pull_request(report)

    ended = command("publish", report, "--dry-run", "--check-name", "agent evaluation")

    assert (ended.status, ended.err) == (0, "")
    calls = re.findall(r"(?m)^(?:GET|POST|PATCH|DELETE) \S+", ended.out)
    assert calls == [
        "POST /repos/acme/widgets/check-runs",
        "PATCH /repos/acme/widgets/check-runs/{id}",
        f"GET /repos/acme/widgets/commits/{COMMIT}/check-runs",
        "PATCH /repos/acme/widgets/check-runs/{id}",
        "GET /repos/acme/widgets/pulls/7",
        "GET /repos/acme/widgets/issues/7/comments?per_page=100",
        "POST /graphql",
        "GET /repos/acme/widgets/issues/comments/{id}",
        "PATCH /repos/acme/widgets/issues/comments/{id}",
        "POST /repos/acme/widgets/issues/7/comments",
        "DELETE /repos/acme/widgets/issues/comments/{id}",
    ]
    assert "<!-- agenteval:comment id=default -->" in ended.out
    assert "\n### ❌ lindensee-cycles-support: 11 of 19 cases fail — 2 for the same reason\n" in ended.out
    bodies = re.findall(r"(?ms)^PATCH /repos/acme/widgets/check-runs/\{id\}(?:   \(.*\))?\n(\{.*?^\})$", ended.out)
    annotated, completed = map(json.loads, bodies)
    titles = [annotation["title"] for annotation in annotated["output"]["annotations"]]
    alike = [re.search(r" and (\d+) like it$", title) for title in titles]
    # One for each cause, which together are of all failed cases.
    assert len(titles) == 6
    assert sum(1 + int(found[1] if found else 0) for found in alike) == 11
    assert (completed["status"], completed["conclusion"]) == ("completed", "failure")


@pytest.mark.long
def test_a_github_that_cannot_be_reached(report: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_pull_request(report)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_0123456789abcdef")

    ended = command("publish", report)

    assert ended.status == 3
    assert "cannot comment on pull request #7 of acme/widgets: GitHub did not answer" in ended.err
    assert "ghp_0123456789abcdef" not in ended.err
