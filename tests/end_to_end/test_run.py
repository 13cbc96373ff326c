"""The installed command from a suite to reports and exit status."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.mistakes import shown
from tests.support import (
    PATIENCE_S,
    QUICKSTART,
    ROOT,
    Answer,
    Ended,
    agenteval,
    case,
    copied_agenteval,
    echo_agent,
    environment,
    error_of,
    python_agent,
    python_program,
    results_in,
    serving,
    statuses,
    verdict_of,
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

    @pytest.mark.long
    def test_passes(self, runs: tuple[Path, Ended, Ended]) -> None:
        folder, first, _ = runs
        assert first.status == 0, first.text
        assert sorted(path.name for path in (folder / "before").iterdir()) == WRITTEN
        before = read_results(folder / "before")
        assert before.run.complete
        assert (before.summary.cases, before.summary.passed) == (19, 19)
        assert before.comparison is None
        turns = [turn for _, found in before.cases() for turn in found.iterations[0].turns]
        assert any(turn.tool_calls for turn in turns)
        assert any(turn.retrieval_context for turn in turns)

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
        assert f"only the {len(failed)} cases that did not pass" in comment
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
        assert "\n  = help: give --out, or --format and --output\n" in mistake.text

    def test_validates(self) -> None:
        done = agenteval("validate", QUICKSTART, cwd=ROOT)
        assert (done.status, done.err) == (0, "")
        assert done.out.splitlines() == [
            "examples/quickstart/agenteval.yaml: ok, 1 agent",
            "examples/quickstart/agent.yaml: ok, holodeck, 19 cases",
        ]


# One agent that does as its input says.
OBEDIENT = """
import os
def reply(request):
    text = request["input"]
    if text == "crash":
        raise RuntimeError("no model")
    if text == "flaky":
        with open(__file__ + ".asked", "a") as file:
            file.write("x")
            return "right" if file.tell() == 1 else "wrong"
    return os.environ.get("ANSWER", text)
"""


def obedient(directory: Path, cases: Sequence[Mapping[str, Any]], **keys: Any) -> None:
    write_suite(directory, cases, agent=python_agent(directory, OBEDIENT), **keys)


PASS, FAIL, CRASH, SKIP = (
    case("pass", "right", "right"),
    case("fail", "wrong", "right"),
    case("crash", "crash", "right"),
    case("skip", "anything", None),
)


class TestExitStatus:
    """The table of docs/gate.md."""

    @pytest.mark.parametrize(
        ("before", "after", "fail_on", "status"),
        [
            (PASS, PASS, "", 0),
            (FAIL, FAIL, "regressions", 0),
            # A known failure.
            (FAIL, FAIL, "", 0),
            (FAIL, {**FAIL, "name": "other", "input": "new"}, "", 1),
            # Nothing in common.
            ({**FAIL, "name": "old"}, PASS, "regressions", 0),
            ({**FAIL, "name": "old"}, PASS, "unproven", 1),
            ({**FAIL, "name": "old"}, PASS, "", 1),
            # The same question under another name is the same case.
            ({**PASS, "name": "old"}, PASS, "", 0),
            # Another question under the same name is no regression.
            ({**FAIL, "input": "right"}, FAIL, "regressions", 0),
        ],
    )
    def test_against_a_baseline(
        self, command: Command, before: dict[str, Any], after: dict[str, Any], fail_on: str, status: int
    ) -> None:
        obedient(Path.cwd(), [before])
        command("run", "--out", "before")
        obedient(Path.cwd(), [after])
        done = command("run", "--baseline", "before/results.json", *(["--fail-on", fail_on] if fail_on else []))
        assert done.status == status, done.text

    @pytest.mark.parametrize(
        ("gate", "fail_on", "status"),
        [
            ("strict: true", "failures", 1),
            ("must_pass: ['*']", "failures", 1),
            ("strict: true", "none", 0),
            ("strict: true", "errors", 0),
            ("first: whole", "regressions", 0),
        ],
    )
    def test_when_a_case_gets_worse(
        self,
        tmp_path: Path,
        command: Command,
        monkeypatch: pytest.MonkeyPatch,
        *,
        gate: str,
        fail_on: str,
        status: int,
    ) -> None:
        obedient(tmp_path, [PASS])
        (tmp_path / "agenteval.yaml").write_text(f"gate: {{{gate}}}\n", encoding="utf-8")
        command("run", "--out", "before")
        monkeypatch.setenv("ANSWER", "wrong")
        done = command("run", "--baseline", "before", "--fail-on", fail_on)
        assert done.status == status, done.text

    def test_when_one_run_of_a_small_suite_looks_worse(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        obedient(tmp_path, [PASS])
        command("run", "--out", "before")
        monkeypatch.setenv("ANSWER", "wrong")
        done = command("run", "--baseline", "before", "--fail-on", "regressions,unproven")
        assert done.status == 0
        # There is no repository, so the base commit's agent cannot run.
        assert "start agenteval in the git repository of the agent" in done.out
        git(tmp_path, "init", "--quiet")
        done = command("run", "--baseline", "before", "--fail-on", "regressions,unproven")
        assert "this repository has no commit yet" in done.out


class TestWhichSuiteAndAgent:
    def test_suites_are_found_by_their_names(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
        assert agenteval("run", cwd=tmp_path).status == 0
        assert [suite.path for suite in results_in(tmp_path).suites] == ["agent.yaml"]

    def test_paths_are_those_of_the_repository(self, tmp_path: Path) -> None:
        folder = tmp_path / "bots" / "support"
        folder.mkdir(parents=True)
        (tmp_path / ".git").mkdir()
        write_suite(folder, [case("a")], agent=echo_agent(folder))
        assert agenteval("run", cwd=folder).status == 0
        assert agenteval("run", "bots/support/agent.yaml", cwd=tmp_path).status == 0
        ids = [found.id for place in (folder, tmp_path) for _, found in results_in(place).cases()]
        assert ids == ["bots/support/agent.yaml::a"] * 2

    def test_a_directory_stands_for_the_suites_and_the_configuration_in_it(
        self, tmp_path: Path, command: Command
    ) -> None:
        folder = tmp_path / "bot"
        folder.mkdir()
        write_suite(folder, [case("a")])
        (folder / "agenteval.yaml").write_text("agents: {default: [cat, answer.txt]}\n", encoding="utf-8")
        (folder / "answer.txt").write_text("hello\n", encoding="utf-8")
        for suite in ("bot", "bot/agent.yaml"):
            assert command("run", suite).status == 0
        assert command("validate", "bot").out.splitlines() == [
            "bot/agenteval.yaml: ok, 1 agent",
            "bot/agent.yaml: ok, holodeck, 1 case",
        ]

    def test_several_suites_run_as_one_and_keep_their_order(self, tmp_path: Path, command: Command) -> None:
        for name, answer in (("one", "hello"), ("two", "bye"), ("three", "hello")):
            (tmp_path / name).mkdir()
            cases = [case(f"{name}-{number}") for number in range(3)]
            write_suite(tmp_path / name, cases, agent={"command": ["echo", answer]})
        done = command("run", "one", "three", "two")
        assert done.status == 1
        results = results_in(tmp_path)
        assert [suite.path for suite in results.suites] == ["one/agent.yaml", "three/agent.yaml", "two/agent.yaml"]
        expected = {
            f"{name}-{n}": "passed" if name != "two" else "failed"
            for name in ("one", "three", "two")
            for n in range(3)
        }
        assert list(statuses(results).items()) == list(expected.items())

    def test_a_suite_given_twice_runs_once(self, tmp_path: Path, command: Command) -> None:
        path = write_suite(tmp_path, [case("a")], agent={"command": ["echo", "hello"]})
        (tmp_path / "link.yaml").symlink_to(path)
        suites = ("agent.yaml", "./agent.yaml", f"../{tmp_path.name}/agent.yaml", path, ".", "link.yaml")
        assert command("run", *suites).status == 0
        assert [len(suite.cases) for suite in results_in(tmp_path).suites] == [1]

    def test_options_may_stand_between_suites(self, tmp_path: Path, command: Command) -> None:
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            write_suite(tmp_path / name, [case(name)], agent={"command": ["echo", "hello"]})
        assert command("run", "one", "--quiet", "two", "--iterations", "1", "three").status == 0
        assert list(statuses(results_in(tmp_path))) == ["one", "two", "three"]

    def test_cases_keep_the_order_of_the_suite_however_they_end(self, tmp_path: Path, command: Command) -> None:
        code = """
            import threading
            order = ["c", "a", "b"]
            ended = {name: threading.Event() for name in order}
            def reply(request):
                place = order.index(request["case"])
                if place:
                    ended[order[place - 1]].wait()
                ended[request["case"]].set()
                return request["input"]
        """
        write_suite(tmp_path, [case(name) for name in "abc"], agent=python_agent(tmp_path, textwrap.dedent(code)))
        assert command("run", "--concurrency", "3").status == 0
        assert list(statuses(results_in(tmp_path))) == ["a", "b", "c"]
        assert [item.get("name") for item in junit(tmp_path).iter("testcase")] == ["a", "b", "c"]

    def test_the_option_names_an_agent_or_is_one(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_suite(tmp_path, [case("a")], agent={"command": ["false"]})
        echo_agent(tmp_path)
        (tmp_path / "agenteval.yaml").write_text("agents: {polite: [echo, hello]}\n", encoding="utf-8")
        recording = {"case": "a", "response": "hello"}
        (tmp_path / "answers.jsonl").write_text(json.dumps(recording), encoding="utf-8")
        monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
        with serving(lambda body: Answer({"response": body["input"]})) as service:
            for chosen in ("polite", "command:echo hello", "python:agent:reply", "replay:answers.jsonl", service.url):
                done = command("run", "--agent", chosen)
                assert done.status == 0, done.text

    def test_a_filter_leaves_the_other_cases_out(self, tmp_path: Path, command: Command) -> None:
        write_suite(tmp_path, [case("Refund a"), case("refund b"), case("other")], agent=echo_agent(tmp_path))
        assert command("run", "--out", "before").status == 0
        assert command("run", "-k", "REFUND", "--baseline", "before").status == 0
        results = results_in(tmp_path)
        assert list(statuses(results)) == ["Refund a", "refund b"]
        assert results.comparison is not None
        assert [item.change for item in results.comparison.cases] == ["same", "same"]


class TestRunning:
    def test_iterations(self, tmp_path: Path, command: Command) -> None:
        obedient(tmp_path, [case("flaky", "flaky", "right"), PASS])
        assert command("run").status == 0
        (tmp_path / "agent.py.asked").unlink()
        assert command("run", "--iterations", "3").status == 1
        flaky, steady = (found for _, found in results_in(tmp_path).cases())
        assert sorted(iteration.status for iteration in flaky.iterations) == ["failed", "failed", "passed"]
        assert flaky.status == "failed"
        assert flaky.score == pytest.approx(1 / 3)
        assert steady.status == "passed"
        (tmp_path / "agenteval.yaml").write_text("iterations: 2\n", encoding="utf-8")
        command("run")
        assert {len(found.iterations) for _, found in results_in(tmp_path).cases()} == {2}

    def test_turns_share_a_session_and_its_history(self, tmp_path: Path, command: Command) -> None:
        code = "import json\ndef reply(request):\n    return json.dumps([request['session'], request['history']])\n"
        turns = [{"input": "one", "ground_truth": "x"}, {"input": "two", "ground_truth": "x"}]
        write_suite(tmp_path, [{"name": "chat", "turns": turns}], agent=python_agent(tmp_path, code))
        command("run")
        ((_, found),) = results_in(tmp_path).cases()
        first, second = (json.loads(turn.response or "") for turn in found.iterations[0].turns)
        session = first[0]
        assert len(session) == 32
        assert first == [session, []]
        assert second == [
            session,
            [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": found.iterations[0].turns[0].response},
            ],
        ]

    @pytest.mark.long
    def test_an_error_of_one_case_stops_no_other(self, tmp_path: Path) -> None:
        code = """
import os, threading
def reply(request):
    if request["case"] == "die":
        os._exit(9)
    if request["case"] == "hang":
        threading.Event().wait()
    if request["case"] == "raise":
        raise SystemExit("no")
    if request["case"] == "odd":
        return {"response": "\\ud800", "tool_calls": [{"name": "x", "args": {"deep": eval("[" * 90 + "]" * 90)}}]}
    return request["input"]
"""
        names = ["a", "die", "b", "hang", "c", "raise", "d", "odd", "e"]
        write_suite(tmp_path, [case(name) for name in names], agent=python_agent(tmp_path, code, timeout=5))
        done = agenteval("run", cwd=tmp_path)
        assert done.status == 3, done.text
        results = results_in(tmp_path)
        expected = dict.fromkeys(names, "passed") | {
            "die": "error",
            "hang": "error",
            "raise": "error",
            "odd": "failed",
        }
        assert statuses(results) == expected
        errors = {found.name: error_of(found) for _, found in results.cases()}
        assert errors["die"] == "the agent's process ended with exit status 9"
        assert errors["hang"] == "no answer within 5 s"
        assert errors["raise"] == "SystemExit: no"

    def test_secrets_are_masked_everywhere(self, tmp_path: Path) -> None:
        code = """
import os
def reply(request):
    if request["case"] == "raise":
        raise RuntimeError(f"denied: {os.environ['API_KEY']}")
    return {"response": os.environ["API_KEY"] + os.environ["OTHER_TOKEN"], "tool_calls": [
        {"name": "call", "args": {os.environ["API_KEY"]: os.environ["API_KEY"]}, "result": os.environ["API_KEY"]}]}
"""
        agent = python_agent(tmp_path, code, env={"KEY": "${API_KEY}"})
        write_suite(tmp_path, [case("a"), case("raise")], agent=agent, name="of ${API_KEY}")
        (tmp_path / "agenteval.yaml").write_text("pass_env: [API_KEY, OTHER_TOKEN]\n", encoding="utf-8")
        secrets = {"API_KEY": 'sk-\u00e9"quoted"-1', "OTHER_TOKEN": "a key of\ntwo long lines"}
        done = agenteval("run", cwd=tmp_path, env=environment(CI="true", **secrets))
        assert done.status == 3
        written = [done.out, done.err]
        written += [path.read_text(encoding="utf-8") for path in (tmp_path / "agenteval-report").iterdir()]
        for text in written:
            for part in ("sk-", "quoted", "a key of", "two long lines"):
                assert part not in text
        assert "***" in done.out

    @pytest.mark.parametrize("secret", ["true", "null", "score", "passed", "1234", "turns", '","'])
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

    @pytest.mark.parametrize(
        ("variables", "shown"),
        [
            ({"MONKEY": "production", "KEYCLOAK": "agent.yaml::production"}, "agent.yaml::production"),
            # A secret is masked wherever it is; both runs still have the same id for the case.
            ({"SHOP_KEY": "agent.yaml::production"}, "***"),
        ],
    )
    def test_a_variable_that_happens_to_hold_the_name_of_a_case_breaks_nothing(
        self, tmp_path: Path, variables: dict[str, str], shown: str
    ) -> None:
        write_suite(tmp_path, [case("production"), case("other")], agent=echo_agent(tmp_path))
        env = environment(**variables)
        for baseline in ((), ("--baseline", "before")):
            done = agenteval("run", "--out", "before", *baseline, cwd=tmp_path, env=env)
            assert done.status == 0, done.text
        results = read_results(tmp_path / "before")
        assert [found.id for _, found in results.cases()] == [shown, "agent.yaml::other"]
        assert results.comparison is not None
        assert [item.change for item in results.comparison.cases] == ["same", "same"]

    def test_a_very_long_secret_in_the_environment_breaks_nothing(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
        done = agenteval("run", cwd=tmp_path, env=environment(PRIVATE_KEY="0123456789" * 1000))
        assert done.status == 0, done.text

    def test_metrics_nobody_asked_for_are_not_needed(self, tmp_path: Path) -> None:
        # The interpreter finds neither NLTK nor rouge-score: whoever does not use them, needs them not.
        write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
        hidden = dict.fromkeys(["nltk", "rouge_score", "sacrebleu", "deepeval", "openai"])
        program = (
            f"import sys\nsys.modules.update({hidden})\n"
            "from agenteval.cli.main import main\nsys.exit(main(['run']))\n"
        )
        done = python_program("-c", program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


class TestOutput:
    def test_a_log_gets_plain_lines(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a"), case("b", "x")], agent=echo_agent(tmp_path))
        done = agenteval("run", cwd=tmp_path)
        first, last = done.err.splitlines()
        assert first == "running 2 cases"
        assert last.startswith("2/2 cases, 1 passed, 1 failed, ")
        assert done.out.splitlines()[-1] == "look   agenteval open          agenteval-report/report.html"
        assert "\x1b" not in done.text
        assert verdict_of(done.out) == "failed: 1 of 2 cases fails"

    def test_details_are_shown_on_demand(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a"), case("b", "x")], agent=echo_agent(tmp_path))
        plain = agenteval("run", cwd=tmp_path)
        assert "✓ a" not in plain.out
        assert plain.out.splitlines()[-2].startswith("again  agenteval run --failed")
        again = agenteval("run", "--failed", "-v", cwd=tmp_path)
        assert "    ✗ equality: 0.00 (threshold: " in again.out
        assert [item.name for item in results_in(tmp_path).failed()] == ["b"]
        report = agenteval("report", "agenteval-report", "--verbose", cwd=tmp_path)
        assert "    ✗ equality: 0.00 (threshold: " in report.out

    def test_a_terminal_gets_a_bar_and_colours(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a"), case("b", "x")], agent=echo_agent(tmp_path))
        text = on_a_terminal([copied_agenteval(), "run"], tmp_path, environment(TERM="xterm-256color"))
        assert " · 2 cases · " in text
        assert "2/2" in text
        assert "\x1b[" in text
        assert "1 of 2 cases fails" in text

    def test_hostile_answers_do_nothing_to_the_terminal(self, tmp_path: Path) -> None:
        hostile = "\x1b]0;title\x07\x1b[31m[bold]\n::error::x\n##[group]y <!-- z -->"
        code = f"def reply(request):\n    return {hostile!r}\n"
        write_suite(tmp_path, [case("a")], agent=python_agent(tmp_path, code))
        done = agenteval("run", cwd=tmp_path)
        assert done.status == 1
        assert "\x1b" not in done.text
        assert not [line for line in done.text.splitlines() if line.startswith("::") or "##[" in line]
        assert junit(tmp_path) is not None

    def test_a_reader_that_leaves_early_is_no_crash(self, tmp_path: Path) -> None:
        write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
        with subprocess.Popen(
            [copied_agenteval(), "run"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            err = process.stderr.read().decode()
            process.wait(timeout=PATIENCE_S)
        assert "Traceback" not in err
        assert "Exception ignored" not in err
        assert statuses(results_in(tmp_path)) == {"a": "passed"}

    def test_the_reports_of_an_earlier_run_are_replaced(self, tmp_path: Path) -> None:
        for answer in ("x", "hello"):
            write_suite(tmp_path, [case("a", answer)], agent=echo_agent(tmp_path))
            agenteval("run", cwd=tmp_path)
        assert statuses(results_in(tmp_path)) == {"a": "passed"}
        assert sorted(path.name for path in (tmp_path / "agenteval-report").iterdir()) == WRITTEN
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "agenteval-report").iterdir()} == {0o644}

    @pytest.mark.parametrize(
        ("agent", "status"),
        [
            ({"python": "broken:reply"}, 3),
            ({"command": ["/no/such/program"]}, 2),
            ({"replay": "gone.jsonl"}, 2),
        ],
    )
    def test_the_reports_of_an_earlier_run_stay_if_no_case_runs(
        self, tmp_path: Path, agent: Mapping[str, Any], status: int
    ) -> None:
        write_suite(tmp_path, [case("a")], agent=echo_agent(tmp_path))
        assert agenteval("run", cwd=tmp_path).status == 0
        folder = tmp_path / "agenteval-report"
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        (tmp_path / "broken.py").write_text("import gone", encoding="utf-8")
        write_suite(tmp_path, [case("a")], agent=agent)
        done = agenteval("run", cwd=tmp_path)
        assert done.status == status, done.text
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert "the reports in agenteval-report/ are those of an earlier run" in done.err

    def test_junit_tells_failures_errors_and_skips_apart(self, tmp_path: Path) -> None:
        obedient(tmp_path, [PASS, FAIL, CRASH, SKIP])
        agenteval("run", cwd=tmp_path)
        root = junit(tmp_path)
        (suite,) = root.iter("testsuite")
        assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["4", "1", "1", "1"]
        kinds: dict[str | None, Callable[[ElementTree.Element], bool]] = {
            "pass": lambda item: [part.tag for part in item] == ["system-out"],
            "fail": lambda item: "equality 0.00" in (item[0].get("message") or ""),
            "crash": lambda item: "RuntimeError: no model" in (item[0].get("message") or ""),
            "skip": lambda item: item[0].tag == "skipped",
        }
        assert all(kinds[item.get("name")](item) for item in root.iter("testcase"))


def junit(directory: Path) -> ElementTree.Element:
    text = (directory / "agenteval-report" / "junit.xml").read_text(encoding="utf-8")
    return ElementTree.fromstring(text)


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
