"""The progress display on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
from pathlib import Path

import yaml
from tests.support import EQUALITY, PATIENCE_S, PYTHON, copied_agenteval, open_folder

_AGENT = """\
import json, sys
question = json.load(sys.stdin)["input"]
print("\\x1b[2Jno" if question == "two" else question)
"""


def _on_terminal(directory: Path, **environment: str) -> tuple[int, str]:
    """Run agenteval with a terminal; return its status and what the terminal received."""
    ours, theirs = pty.openpty()
    received: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                return
            if not data:
                return
            received.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    plain = {"PATH": os.environ["PATH"], "HOME": str(directory), "TERM": "xterm-256color", "COLUMNS": "80"}
    command = [copied_agenteval(), "run", "agent.yaml"]
    done = subprocess.run(
        command, cwd=directory, env=plain | environment, stdout=theirs, stderr=theirs, timeout=PATIENCE_S, check=False
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done.returncode, b"".join(received).decode()


def _write(directory: Path) -> None:
    cases = [{"name": text, "input": text, "ground_truth": text} for text in ("one", "two", "three")]
    suite = {"name": "bot", "evaluations": {"metrics": [EQUALITY]}, "test_cases": cases}
    (directory / "agent.yaml").write_text(yaml.safe_dump(suite))
    (directory / "agent.py").write_text(_AGENT)
    agents = {"default": {"command": [PYTHON, "agent.py"]}}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents}))


def test_a_terminal_shows_a_bar_that_is_gone_at_the_end() -> None:
    with open_folder() as directory:
        _write(directory)
        status, text = _on_terminal(directory)
        plain_status, plain = _on_terminal(directory, NO_COLOR="1")
    assert status == plain_status == 1
    assert "━" in text
    assert "bot · 3 cases · command " in text
    assert "3/3" in text
    # The display erases its lines before the result.
    assert text.index("\x1b[1A") < text.rindex("1 of 3 cases fails")
    assert "\x1b[2J" not in text
    assert "\x1b[31m" not in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)
