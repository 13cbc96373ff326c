"""Which lines of a text accept something: those that its author says, and not those that are shown or quoted."""

from __future__ import annotations

from agenteval.github.acceptances import accepting_lines, written_lines

LINE = "Agenteval-Accept: c0 the tariff changed"
WORDS = "c0 the tariff changed"
# Texts in which the line says nothing.
SHOWN = {
    "fence": f"```\n{LINE}\n```",
    "tilde fence": f"~~~ text\n{LINE}\n~~~",
    "open fence": f"```\n{LINE}",
    "fence in a list": f"- so:\n  ```\n  {LINE}\n  ```",
    "indented code": f"Write:\n\n    {LINE}",
    "tab": f"Write:\n\n\t{LINE}",
    "code": f"`{LINE}`",
    "code of several lines": f"`\n{LINE}\n`",
    "quote": f"> {LINE}",
    "lazy quote": f"> somebody wrote\n{LINE}",
    "list": f"- {LINE}",
    "heading": f"# {LINE}",
    "underlined": f"{LINE}\n---",
    "comment": f"<!--\n{LINE}\n-->",
    "comment with a blank line": f"<!--\n\n{LINE}\n\n-->",
    "open comment": f"<!--\n\n{LINE}",
    "comment in a paragraph": f"Fine. <!--\n{LINE}\n-->",
    "pre": f"<pre>\n\n{LINE}\n</pre>",
    "blockquote": f"<blockquote>\n\n{LINE}\n\n</blockquote>",
    "details": f"<details>\n\n{LINE}\n\n</details>",
    "template": f"<template>\n\n{LINE}\n\n</template>",
    "element in a paragraph": f"No: <del>not\n{LINE}</del>",
    "element over paragraphs": f"No: <s>not\n\n{LINE}\n\nso</s>",
    "struck": f"~~not\n{LINE}~~",
    "struck line": f"~~{LINE}~~",
    "in a sentence": f"I would not write {LINE}",
}
# Texts in which it does.
SAID = {
    "alone": LINE,
    "paragraph": f"Fine.\r\n\r\n  {LINE}\r\n",
    "line of a paragraph": f"Fine.\n{LINE}\nThank you.",
    "small letters": LINE.lower(),
    "trailer": f"Change the tariff\n\n{LINE}\nSigned-off-by: Ada <ada@example.org>\n",
    "after code": f"```\nx\n```\n{LINE}",
    "after a quote": f"> Why?\n\n{LINE}",
    "after a comment": f"<!-- a template -->\n\n{LINE}",
    "after a struck paragraph": f"~~No.~~\n\n{LINE}",
    "break": f"Fine.  \n{LINE}  \nFine.",
}


def test_what_is_only_shown_says_nothing() -> None:
    assert {name: accepting_lines(text) for name, text in SHOWN.items()} == {name: [] for name in SHOWN}


def test_what_the_author_says_counts() -> None:
    assert {name: accepting_lines(text) for name, text in SAID.items()} == {name: [WORDS] for name in SAID}


def test_names_are_read_as_they_are_written() -> None:
    for name in ("c[0]*", "a_b_c", "**bold**", "a `b` c", "<b>", "a &amp; b", r"a\*b", "[a](b)", "http://a.b"):
        assert accepting_lines(f"Agenteval-Accept: {name} because\n{LINE}") == [f"{name} because", WORDS], name


def test_lines_that_say_nothing_are_known() -> None:
    assert written_lines(SHOWN["fence"]) == [WORDS]
    assert written_lines(f"{SHOWN['comment']}\n\n{LINE}") == [WORDS, WORDS]
    assert written_lines(SHOWN["quote"]) == written_lines("Nothing.") == []
