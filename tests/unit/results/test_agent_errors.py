"""The errors of agents in the words of their authors."""

from __future__ import annotations

import pytest

from agenteval.results.rollup import without_traceback

TRACEBACK = 'Traceback (most recent call last): File "a.py", line 1, in <module> raise RuntimeError("no") '


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("no answer within 3 s", "no answer within 3 s"),
        (f"exit status 1: {TRACEBACK}RuntimeError: no key", "exit status 1: RuntimeError: no key (a.py:1)"),
        (f"{TRACEBACK}openai.AuthenticationError: key: bad", "openai.AuthenticationError: key: bad (a.py:1)"),
        # Nothing says how it ends.
        (f"exit status 1: {TRACEBACK}cut off", f"exit status 1: {TRACEBACK}cut off"),
    ],
)
def test_of_a_traceback_only_the_exception_is_shown(error: str, shown: str) -> None:
    assert without_traceback(error) == shown
