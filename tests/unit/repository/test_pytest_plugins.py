"""The pytest plugins that come with the package, and the documented way to switch them off."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from scripts.licences import locked_packages
from tests.support import PATIENCE_S, ROOT, environment

_PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
_OFF = re.findall(r"-p no:([\w.]+)", next(re.finditer(r"^addopts = .*$", _PAGE, re.MULTILINE))[0])


def _installed() -> set[str]:
    """Names of the plugins of all packages that an installation brings."""
    unused = (ROOT / "requirements" / "unused.txt").read_text(encoding="utf-8").splitlines()
    brought = {_normal(name) for name in (*locked_packages(), *unused)}
    return {item.name for item in entry_points(group="pytest11") if item.dist and _normal(item.dist.name) in brought}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_all_of_them_are_documented() -> None:
    assert set(_OFF) == _installed()


def test_the_documented_line_switches_them_off(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
    off = [argument for name in _OFF for argument in ("-p", f"no:{name}")]
    left = _plugins([sys.executable, "-m", "pytest", "--trace-config", "--rootdir", str(tmp_path), *off], tmp_path)
    # The list is complete: it has a plugin of pytest, and one of a package that agenteval does not bring.
    assert {"cacheprovider", "hypothesispytest"} <= left
    assert not left & _installed()


def _plugins(command: list[str], folder: Path) -> set[str]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(DEEPEVAL_TELEMETRY_OPT_OUT="1"),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A name that is blocked is listed with None.
    return set(re.findall(r"^    (\S+) +: (?!None)", done.stdout, re.MULTILINE))
