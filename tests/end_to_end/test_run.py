"""The installed command from a suite to reports and exit status."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.mistakes import shown
from tests.support import (
    PATIENCE_S,
    ROOT,
    Ended,
    agenteval,
    case,
    copied_agenteval,
    echo_agent,
    environment,
    results_in,
    statuses,
    write_suite,
)

from agenteval.results.store import read_results

RENDERED = ["badge.json", "comment.md", "findings.json", "junit.xml", "report.html", "summary.md", "trend.json"]
WRITTEN = sorted([*RENDERED, "journal.jsonl", "results.json"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended, Ended]:
    """A repository with the reports ``before`` and ``after`` a change, and how both runs ended."""
    folder = tmp_path_factory.mktemp("quickstart")
    shutil.copytree(ROOT / "examples" / "quickstart", folder, dirs_exist_ok=True)
    git(folder, "init", "--quiet")
    commit(folder)
    first = agenteval("run", "agent.yaml", "--out", "before", cwd=folder)
    config = folder / "agenteval.yaml"
    config.write_text(config.read_text("utf-8").replace("ranking: bm25", "ranking: first-match"), encoding="utf-8")
    arguments = ("--baseline", "before", "--out", "after")
    return folder, first, agenteval("run", "agent.yaml", *arguments, cwd=folder)


class TestQuickstart:
    """The example that people try first, and what its switch does."""

    def test_shows_what_got_worse(self, runs: tuple[Path, Ended, Ended]) -> None:
        folder, _, second = runs
        assert second.status == 1, second.text
        after = read_results(folder / "after")
        assert after.comparison is not None
        assert after.comparison.state == "proven"
        written = {path.name for path in (folder / "after").iterdir()}
        assert written >= {*WRITTEN, "confirmation-1.jsonl"}
        comment = (folder / "after" / "comment.md").read_text(encoding="utf-8")
        failed = [case.name for _, case in after.cases() if case.status == "failed"]
        assert len(failed) == after.summary.failed > 0
        # Of each cause, the first two cases are named.
        assert failed[0] in comment
        assert f"{len(failed)} of 19 cases broke" in comment
        assert any(name in second.out for name in failed)

    def test_compare_and_report_need_no_agent(
        self, runs: tuple[Path, Ended, Ended], command: Command, tmp_path: Path
    ) -> None:
        folder, *_ = runs
        compared = command("compare", folder / "after", folder / "before", "-v")
        assert compared.status == 1
        assert command("compare", folder / "after", folder / "before", "--fail-on", "regressions").status == 1
        assert command("compare", folder / "after", folder / "before", "--fail-on", "none").status == 0
        assert command("compare", folder / "before", folder / "after").status == 0
        assert command("compare", folder / "before", folder / "before").status == 0
        rendered = command("report", folder / "before" / "results.json", "--out", tmp_path / "alone")
        assert rendered.status == 0
        assert sorted(path.name for path in (tmp_path / "alone").iterdir()) == RENDERED
        for name in RENDERED:
            assert (tmp_path / "alone" / name).read_bytes() == (folder / "before" / name).read_bytes()
        self.check_single_reports(folder / "before", command, tmp_path / "single")

    def check_single_reports(self, reports: Path, command: Command, out: Path) -> None:
        """Each format alone, by its name or by the name of the file, is the file of the whole report."""
        expected = {"markdown": "summary.md", "html": "report.html", "junit": "junit.xml", "json": "results.json"}
        for kind, name in expected.items():
            assert command("report", reports, "--format", kind, "-o", out / kind / "any").status == 0
            assert (out / kind / "any").read_bytes() == (reports / name).read_bytes(), kind
            # Without a file, the report is on standard output.
            assert command("report", reports, "--format", kind).out.encode() == (reports / name).read_bytes(), kind
            assert command("report", reports, "-o", out / name).status == 0
            assert (out / name).read_bytes() == (reports / name).read_bytes(), kind
        both = command("report", reports, "--format", "json", "--out", out)
        (mistake,) = shown(both.err)
        assert (both.status, mistake.title) == (2, "--out is for all reports")
        assert "\n  = help: give -o FILE for one report\n" in mistake.text


class TestRunning:
    @pytest.mark.parametrize("secret", ["true", "passed", "1234", '","'])
    def test_a_secret_that_looks_like_our_own_words_breaks_nothing(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, secret: str
    ) -> None:
        agent = echo_agent(tmp_path, env={"KEY": "${API_KEY}"})
        write_suite(tmp_path, [case("a", f"<{secret}>", f"<{secret}>"), case("b")], agent=agent)
        monkeypatch.setenv("API_KEY", secret)
        done = command("run")
        assert done.status == 0, done.text
        results = results_in(tmp_path)
        assert statuses(results) == {"a": "passed", "b": "passed"}
        assert results.cases()[0][1].iterations[0].turns[0].response in {"<***>", f"<{secret}>"}


class TestOutput:
    def test_a_terminal_gets_a_bar_and_colours(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a"), case("b", "x")], agent=echo_agent(tmp_path))
        text = on_a_terminal([copied_agenteval(), "run"], tmp_path, environment(TERM="xterm-256color"))
        assert " · 2 cases · " in text
        assert "2/2" in text
        assert "\x1b[" in text
        assert "1 of 2 cases fails" in text

    def test_the_reports_of_an_earlier_run_are_replaced(self, tmp_path: Path, command: Command) -> None:
        for answer in ("x", "hello"):
            write_suite(tmp_path, [case("a", answer)], agent=echo_agent(tmp_path))
            command("run")
        assert statuses(results_in(tmp_path)) == {"a": "passed"}
        assert sorted(path.name for path in (tmp_path / "agenteval-report").iterdir()) == WRITTEN
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "agenteval-report").iterdir()} == {0o644}


def on_a_terminal(argv: Sequence[str], directory: Path, env: Mapping[str, str]) -> str:
    """Everything that a command shows on a terminal."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while data := os.read(ours, 4096):
                shown.extend(data)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    try:
        subprocess.run(
            argv,
            cwd=directory,
            env=dict(env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return shown.decode("utf-8", "replace")
