"""Starts programs from npm packages, which ``make peers`` installs."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def running(command: Sequence[str], address: str, log: Path) -> Iterator[None]:
    """Runs a program for the length of the block, which begins when the address answers; its output is kept."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + _START_S
        while not _answers(address):
            if process.poll() is not None or time.monotonic() > deadline:
                text = log.read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"{address} did not start:\n{text}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=1).close()
    except (URLError, OSError):
        return False
    return True
