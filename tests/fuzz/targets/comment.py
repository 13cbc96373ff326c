"""The text of the sticky comment after people edited it. No error; ReportTooLargeError when it is written again."""

from __future__ import annotations

from contextlib import suppress

from agenteval.github.comment_update import parse
from agenteval.report.parts import ReportTooLargeError


def target(data: bytes) -> None:
    comment = parse(data.decode("utf-8", "replace"))
    if comment is None:
        return
    with suppress(ReportTooLargeError):
        text = comment.render()
        again = parse(text)
        assert again is not None
        assert again.render() == text
