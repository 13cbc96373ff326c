"""A signal at any time leaves no report of an earlier run beside a later one; only SIGKILL leaves reports out."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import agenteval, case, copied_program, python_program, write_suite

from agenteval.report.report import FILES
from agenteval.results.store import RESULTS_FILE

REPORTS = {RESULTS_FILE, *FILES}
# In the order in which a run reaches them.
STAGES = {
    "the first case": ("agenteval.run.store", "CaseStore.record"),
    "the results": ("agenteval.run.pipeline", "make_results"),
    "the comparison": ("agenteval.run.pipeline", "compare_first"),
    "the gate": ("agenteval.run.pipeline", "decide"),
    "the writing of results": ("agenteval.report.report", "results_json"),
    "the first report": ("agenteval.report.junit", "report_files"),
    "the comment": ("agenteval.report.markdown", "render_comment"),
    "the last report": ("agenteval.report.html", "render"),
}
# Runs the command once per stage, each time in a child process that sends itself the signals when it gets there.
PROGRAM = """
import importlib, json, os, shutil, signal, sys
# Shells ignore it in programs that they start in the background, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
from agenteval.__main__ import main
import agenteval.cli.main, agenteval.run.pipeline, agenteval.report.html, agenteval.report.markdown
import agenteval.report.junit, agenteval.report.report, agenteval.run.store

stages, numbers, arguments = json.loads(sys.argv[1])
sys.argv[1:] = arguments
for name, (module, target) in stages.items():
    folder = name.replace(" ", "-")
    shutil.copytree("green", f"{folder}/agenteval-report")
    for file in ("agent.yaml", "recorded.json"):
        shutil.copy(file, folder)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        sys.stdout = open("stdout", "w"); sys.stderr = open("stderr", "w")
        place = importlib.import_module(module)
        *owner, attribute = target.split(".")
        for part in owner:
            place = getattr(place, part)
        usual = getattr(place, attribute)
        left = list(numbers)

        def ended(*given, **named):
            while left:
                os.kill(os.getpid(), left.pop(0))
            return usual(*given, **named)

        setattr(place, attribute, ended)
        status = 99
        try:
            status = main()
        except SystemExit as error:
            status = error.code
        finally:
            sys.stdout.flush(); sys.stderr.flush()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    print(json.dumps([name, os.waitstatus_to_exitcode(ended)]), flush=True)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the reports of a run that passed, and a change that fails."""
    root = tmp_path_factory.mktemp("reports")
    cases = [case("a"), case("b")]
    write_suite(root, cases, agent={"command": [sys.executable, "-c", "print('hello')"]})
    assert agenteval("run", "--quiet", cwd=root).status == 0
    (root / "agenteval-report").rename(root / "green")
    assert {path.name for path in (root / "green").iterdir()} >= REPORTS
    (root / "recorded.json").write_bytes((root / "green" / RESULTS_FILE).read_bytes())
    write_suite(root, [{**item, "ground_truth": "goodbye"} for item in cases], agent={"replay": "recorded.json"})
    return root


def ended_runs(directory: Path, tmp_path: Path, numbers: list[int], *arguments: str) -> dict[str, tuple[int, Path]]:
    """Return exit status and folder of the run that was ended at each stage."""
    for path in directory.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "green").symlink_to(directory / "green")
    asked = json.dumps([STAGES, numbers, ["run", "--quiet", *arguments]])
    done = copied_program(PROGRAM, asked, cwd=tmp_path)
    assert done.status == 0, done.err
    statuses = dict(map(json.loads, done.out.splitlines()))
    assert list(statuses) == list(STAGES)
    return {name: (status, tmp_path / name.replace(" ", "-")) for name, status in statuses.items()}


def left_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def verdict_in(files: dict[str, bytes]) -> Any:
    return json.loads(files[RESULTS_FILE])["gate"]["verdict"]


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_the_reports_are_finished_first(directory: Path, tmp_path: Path, number: signal.Signals) -> None:
    old = left_in(directory / "green")
    for stage, (status, folder) in ended_runs(directory, tmp_path, [number]).items():
        files = left_in(folder / "agenteval-report")
        assert status == 128 + number, stage
        assert set(files) == {*REPORTS, "journal.jsonl"}, stage
        assert [name for name in REPORTS if files[name] == old[name]] == [], stage
        assert verdict_in(files) == ("error" if stage == "the first case" else "failed"), stage
        printed = (folder / "stderr").read_text(encoding="utf-8")
        said = "agenteval: interrupted after the last case; the reports are complete\n"
        assert printed == ("" if stage == "the first case" else said), stage


def test_ctrl_c_during_the_imports_is_no_error(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'agenteval.cli.options': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from agenteval.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = python_program("-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
