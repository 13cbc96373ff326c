"""Each program of user code has a mark that no program of another run has."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest

from agenteval.core import process_groups
from agenteval.core.process_groups import free_mark, new_mark

# Another run that begins with the same number, and whose processes have not started yet.
OTHER = """
import sys
from itertools import count
from agenteval.core import process_groups
process_groups._numbers = count(7)
print(*(process_groups.new_mark() for _ in range(20)), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="marks are groups of Linux processes")
def test_two_runs_share_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_groups, "_numbers", count(7))
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = set(map(int, other.stdout.readline().split()))
        ours = {new_mark() for _ in range(20)}
        assert len(theirs) == len(ours) == 20
        assert not theirs & ours
        other.communicate("")
    for mark in ours:
        free_mark(mark)
    # The marks of a run that has ended are free again.
    monkeypatch.setattr(process_groups, "_numbers", count(min(theirs) - process_groups._FIRST))
    mark = new_mark()
    free_mark(mark)
    assert mark in theirs


def test_names_that_no_run_took_stop_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_groups, "_reserved", lambda _: None)
    first, second = new_mark(), new_mark()
    assert first != second
    for mark in (first, second):
        free_mark(mark)
