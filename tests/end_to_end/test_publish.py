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
    assert "\n### ❌ lindensee-cycles-support: 11 of 19 cases failed — 3 for the same reason\n" in ended.out
    bodies = re.findall(r"(?ms)^PATCH /repos/acme/widgets/check-runs/\{id\}(?:   \(.*\))?\n(\{.*?^\})$", ended.out)
    annotated, completed = map(json.loads, bodies)
    titles = [annotation["title"] for annotation in annotated["output"]["annotations"]]
    alike = [re.search(r" and (\d+) like it$", title) for title in titles]
    # One for each cause, which together are of all failed cases.
    assert len(titles) == 6
    assert sum(1 + int(found[1] if found else 0) for found in alike) == 11
    assert (completed["status"], completed["conclusion"]) == ("completed", "failure")


@pytest.mark.parametrize(
    ("options", "creates"),
    [
        (["--comment", "always"], True),
        (["--comment", "failures"], True),
        (["--comment", "changes"], True),
        (["--comment", "never"], None),
    ],
)
def test_when_a_comment_is_made(report: Path, command: Command, options: list[str], creates: bool | None) -> None:
    of_a_pull_request(report)

    out = command("publish", report, "--dry-run", *options).out

    assert ("POST /repos/acme/widgets/issues/7/comments" in out) == bool(creates)
    assert ("PATCH /repos/acme/widgets/issues/comments" in out) == (creates is not None)


def test_options_say_where_to(report: Path, command: Command) -> None:
    place = ("--repository", "o/r", "--commit", "b" * 40, "--pull-request", "12", "--check-name", "x")

    out = command("publish", report / "results.json", "--dry-run", *place).out

    assert "GET /repos/o/r/issues/12/comments" in out
    assert f'"head_sha": "{"b" * 40}"' in out


def test_results_of_no_pull_request_have_nothing_to_write(report: Path, command: Command) -> None:
    ended = command("publish", report, "--dry-run", "--repository", "o/r", "--commit", COMMIT)

    assert (ended.status, ended.out.strip()) == (0, "no call would be made")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--commit", COMMIT], "name it: --repository OWNER/NAME"),
        (["--commit", COMMIT, "--repository", "widgets"], "'widgets' is not a repository"),
        (["--repository", "o/r", "--commit", "main"], "name it: --commit SHA"),
        (["--repository", "o/r", "--commit", COMMIT, "--pull-request", "7"], "a token is needed"),
    ],
)
def test_mistakes(report: Path, command: Command, options: list[str], message: str) -> None:
    ended = command("publish", report, *options)

    assert ended.status == 2
    assert message in ended.err


def test_a_missing_file(command: Command) -> None:
    ended = command("publish", "nowhere", "--dry-run")

    assert ended.status == 2
    assert "no such results file" in ended.err


@pytest.mark.long
def test_a_github_that_cannot_be_reached(report: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_pull_request(report)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_0123456789abcdef")

    ended = command("publish", report)

    assert ended.status == 3
    assert "cannot comment on pull request #7 of acme/widgets: GitHub did not answer" in ended.err
    assert "ghp_0123456789abcdef" not in ended.err
