"""A program of a user of the public API: its types are checked against the installed package, then it runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import ROOT, case, python_program, write_suite

PROGRAM = ROOT / "tests" / "consumer" / "program.py"


@pytest.mark.long
def test_its_types_are_right(tmp_path: Path) -> None:
    # Elsewhere, and without the settings of this repository: as for a user, `py.typed` makes the types count.
    program = shutil.copy(PROGRAM, tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from agenteval import evaluat, evaluate\nevaluate(1).gate.passes\n")
    cache = ROOT / ".mypy_cache" / "consumer"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", program, wrong]

    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    found = [line.rpartition("[")[2] for line in checked.stdout.splitlines() if line.startswith("wrong.py:")]
    assert sorted(found) == ["arg-type]", "attr-defined]", "attr-defined]"], checked.stdout + checked.stderr
    assert "Found 3 errors in 1 file" in checked.stdout


def test_it_runs(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("hello")])
    done = python_program(PROGRAM, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
