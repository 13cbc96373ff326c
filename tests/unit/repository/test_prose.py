"""The check of unclear phrases finds them, also across lines, and leaves plain text alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.prose import findings

FILE = Path("file.md")


@pytest.mark.parametrize(
    "text",
    [
        "What came of it is listed.",
        "blocks only what is no chance",
        "after a failure that may pass",
        "the run comes to its end",
        "a setup of its own",
        "this value is none; it fails",
        "# what came\n    # of the run",
    ],
)
def test_unclear_phrases_are_found(text: str) -> None:
    assert findings(FILE, text)


@pytest.mark.parametrize(
    "text", ["value is None: continue", "The runner retries after a transient failure.", "its own", "not a wishbone"]
)
def test_plain_text_has_no_findings(text: str) -> None:
    assert findings(FILE, text) == []


def test_a_finding_has_file_line_and_better_words() -> None:
    (finding,) = findings(FILE, "one\ntwo\nit was given\nup then")
    assert str(finding) == "file.md:3: 'given up': stopped, ended or not retried"
