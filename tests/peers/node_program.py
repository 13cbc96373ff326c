"""Starts programs from npm packages, which ``make peers`` installs."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from pathlib import Path
from urllib.error import URLError

_HERE = Path(__file__).parent
_START_S = 30


def node_program(package: str, script: str, node_version: str) -> list[str]:
    """Node and the script of a package; ``AGENTEVAL_NODE`` names another node."""
    file = _HERE / "node_modules" / package / script
    installed = sorted(_HERE.glob("node_modules/node*/bin/node"))
    node = os.environ.get("AGENTEVAL_NODE") or (str(installed[0]) if installed else "")
    if not node or not file.exists():
        raise RuntimeError(
            f"The peer tests need node {node_version} or newer and the package {package}: run `make peers`, "
            "and set AGENTEVAL_NODE on systems other than Linux."
        )
    return [node, str(file)]


def wait_until_up(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the address answers; raises with the log when the program ends or takes too long."""
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except (URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{address} did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")
