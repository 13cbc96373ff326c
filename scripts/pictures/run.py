"""The run that the pictures show: that of ``agenteval demo``, with its times and its commit replaced.

Everything else is what the installed commands write and print, so a picture changes when they do.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.cli.demo import demo
from agenteval.results.model import Results
from agenteval.results.store import read_results

COLUMNS = 80
_COMMIT = "1f0c2ab9d4e7368f5a2b71c09de4f6830b5a9c7e"
_MOMENTS = {"started_at": "2026-11-25T09:00:00Z", "finished_at": "2026-11-25T09:00:02Z"}
_BASELINE_MADE = "2026-11-25T07:00:00Z"
_MEASURED = re.compile(r"(?:.*_)?(?:latency|duration)(?:_.*)?")
_SECONDS, _MILLISECONDS = 1.8, 40.0
_TIMEOUT_S = 120


@dataclass(frozen=True)
class ShownRun:
    """A run, and what agenteval makes of it.

    Attributes:
        results: the run, compared with the one before the change.
        comment: ``comment.md``.
        terminal: what the run prints on a terminal, with colours.
    """

    results: Results
    comment: str
    terminal: str


def shown_run() -> ShownRun:
    """Make the run."""
    told: list[str] = []
    demo(told.append)
    (line,) = (line for line in told if line.startswith("agent, suite and reports: "))
    made = Path(line.partition(": ")[2])
    try:
        return _reported(made / "agenteval-report")
    finally:
        shutil.rmtree(made)


def _reported(report: Path) -> ShownRun:
    file = report / "results.json"
    text = file.read_text(encoding="utf-8")
    commit = json.loads(text)["run"]["commit"]
    for length in (len(commit), 12, 7):
        text = text.replace(commit[:length], _COMMIT[:length])
    with tempfile.TemporaryDirectory(prefix="agenteval-pictures-") as folder:
        steady = Path(folder) / "agenteval-report"
        steady.mkdir()
        (steady / "results.json").write_text(json.dumps(_steady(json.loads(text))), encoding="utf-8")
        printed = _printed([sys.executable, "-m", "agenteval", "report", steady.name], Path(folder))
        comment = (steady / "comment.md").read_text(encoding="utf-8")
        return ShownRun(read_results(steady), comment, printed.replace(f"{folder}/", ""))


def _steady(value: Any, key: str = "") -> Any:
    """Return JSON data with the same times in every run, and without a comparison of times."""
    if isinstance(value, dict):
        return {name: _steady(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [] if key == "resources" else [_steady(item) for item in value]
    if key in _MOMENTS:
        return _MOMENTS[key]
    if key == "created_at" and value is not None:
        return _BASELINE_MADE
    if _MEASURED.fullmatch(key) and isinstance(value, int | float):
        return _SECONDS if key.endswith("_s") else _MILLISECONDS
    return value


def _printed(command: list[str], folder: Path) -> str:
    """Run a command on a terminal of its own; return what it prints."""
    ours, theirs = pty.openpty()
    environment = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "GITHUB_ACTIONS", "CI"}
    }
    environment |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    read = b""
    # Linux reports the end of the terminal as an error.
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as stream:
        while part := stream.read(65536):
            read += part
    process.wait(_TIMEOUT_S)
    return read.decode("utf-8").replace("\r\n", "\n")
