"""A comment as a reader of the pull request sees it first, for the terminal."""

from __future__ import annotations

import io
import re
from typing import ClassVar

_WIDTH = 76
_HIDDEN = re.compile("[\u200b\u2060]|&#8203;|<!--.*?-->", re.DOTALL)
_FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>.*?</details>", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>")
_BREAK = re.compile(r"<br\s*/?>")
# Rich fills lines with spaces, and puts several empty lines around a table.
_ENDS = re.compile(r" +$", re.MULTILINE)
_GAPS = re.compile(r"\n{3,}")
_TAG = re.compile(r"</?[a-z][^<>]*>")


def comment_view(markdown: str) -> list[str]:
    """Return the lines of a comment; of a folded part only its title."""
    from rich.console import Console
    from rich.markdown import Markdown

    from agenteval.cli.whole_words import TableOfWholeWords

    class Comment(Markdown):
        elements: ClassVar = {**Markdown.elements, "table_open": TableOfWholeWords}

    text = _HIDDEN.sub("", markdown)
    text = _FOLDED.sub(r"▸ \1", text)
    text = _SUMMARY.sub(r"▾ \1\n", text)
    text = _TAG.sub("", _BREAK.sub(" · ", text))
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(Comment(text))
    return _GAPS.sub("\n\n", _ENDS.sub("", captured.get())).strip("\n").splitlines()
