"""The demo where it cannot run; `test_wheel.py` shows it from start to end."""

from __future__ import annotations

from pathlib import Path

from tests.mistakes import shown
from tests.support import agenteval, environment


def test_a_demo_that_cannot_run_leaves_nothing_behind(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\necho no room >&2\nexit 7\n", encoding="utf-8")
    (tools / "git").chmod(0o755)
    table = {
        "/nowhere": "git is missing: the demo keeps the agent before the change in a repository",
        str(tools): "init --quiet ended with exit status 7:\nno room",
    }
    for path, message in table.items():
        ended = agenteval("demo", cwd=tmp_path, env=environment(TMPDIR=str(tmp_path), PATH=path))
        assert (ended.status, ended.out) == (3, "")
        (mistake,) = shown(ended.err)
        assert mistake.title.startswith("git ")
        assert mistake.says(message), ended.err
    assert list(tmp_path.iterdir()) == [tools]
