"""What a user gets who installs the package: a wheel in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

from tests.end_to_end.test_init import AGENTS, SUITES, WORKFLOW, files_in
from tests.support import PATIENCE_S, ROOT, environment, run_to_end

from agenteval.results.store import read_results


def test_the_wheel_has_every_starter_and_the_demo(tmp_path: Path) -> None:
    # One test, because other processes would build the wheel again.
    programs = installed(tmp_path / "wheel")
    check_files(tmp_path / "wheel")
    check_starter(programs, tmp_path)
    check_demo(programs, tmp_path)


def installed(folder: Path) -> Path:
    """Return the programs of an environment with the wheel, which borrows the packages that the wheel needs."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, env=environment(), capture_output=True, check=True, timeout=PATIENCE_S)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], env=environment(), capture_output=True, check=True, timeout=PATIENCE_S)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # A path in such a file comes after the environment's own packages, and its .pth files are not read.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python.parent


def check_files(folder: Path) -> None:
    """The wheel has every file of the package; each starter is one of them."""
    (wheel,) = folder.glob("*.whl")
    source = ROOT / "src"
    expected = {str(path.relative_to(source)) for path in (source / "agenteval").rglob("*") if path.is_file()}
    assert {name for name in expected if "__pycache__" not in name} <= set(ZipFile(wheel).namelist())


def check_starter(programs: Path, tmp_path: Path) -> None:
    target = tmp_path / "starter"
    arguments = ["init", str(target), "--format", "fluxloop", "--agent", "python"]
    ended = run_to_end([str(programs / "agenteval-action"), *arguments], tmp_path, environment())
    assert ended.status == 0, ended.err
    expected = [*SUITES["fluxloop"], ".gitignore", "agenteval.yaml", *AGENTS["python"], WORKFLOW]
    assert sorted(files_in(target)) == sorted(expected)


def check_demo(programs: Path, tmp_path: Path) -> None:
    # Neither the job nor the settings of the user change what the demo shows.
    foreign = {"GIT_DIR": "/nowhere", "GITHUB_SHA": "f" * 40, "QUICKSTART_RANKING": "first-match"}
    (tmp_path / ".gitconfig").write_text("[commit]\ngpgsign = true\n[core]\nhooksPath = /nowhere\n", encoding="utf-8")

    env = environment(TMPDIR=str(tmp_path), HOME=str(tmp_path), **foreign)
    ended = run_to_end([str(programs / "agenteval-action"), "demo"], tmp_path, env)

    assert (ended.status, ended.err) == (0, "")
    (folder,) = tmp_path.glob("agenteval-demo-*")
    reports = folder / "agenteval-report"
    before, after = (read_results(place) for place in (reports / "before", reports))
    assert before.gate is not None
    assert before.gate.passed
    assert after.comparison is not None
    broke = [case.name for case in after.comparison.cases if case.change == "broke"]
    assert sorted(broke) == ["opening-hours-by-season", "quote-in-three-steps"]
    # The gate did not rest on one run: both versions ran side by side.
    assert after.comparison.state == "proven"
    said = ended.out.splitlines()
    assert [line for line in said if line[:1].isdigit()] == [
        "1. An example agent answers the customers of a bicycle rental shop.",
        "2. Somebody simplifies agent.py:",
        "3. The gate runs both versions of the agent, as it does for a pull request:",
        "4. A reviewer sees this comment on the pull request:",
    ]
    comment = ended.out.partition("4. A reviewer")[2]
    assert all(name in comment for name in broke)
    assert f"agent, suite and reports: {folder}" in said
    assert f"  pipx run agenteval-action open {reports}" in said
    assert (reports / "report.html").is_file()
