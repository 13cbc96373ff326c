"""A comment in the terminal: what a reader sees before opening a folded part."""

from __future__ import annotations

import itertools

from agenteval.cli.demo import comment_view

COMMENT = """\
<!-- agenteval: hidden -->
### ❌ f1&#95;score fell

<b>2 of 3 cases</b> passed<br>in <code>agent&#95;x.yaml</code>, com&#8203;mit

- one & two

| Baseline | This run |
|:--|:--|
| 144.50 | a &lt;b&gt; |

<details open><summary><b>Shown</b></summary>

inside

</details>

<details><summary><b>Folded</b>: 3 rows</summary>

| secret |
|:--|
| cell |

</details>

the end
"""


def test_folded_parts_have_only_their_title_and_tags_are_gone() -> None:
    assert [line.strip() for line in comment_view(COMMENT) if line.strip() and "─" not in line] == [
        "❌ f1_score fell",
        "2 of 3 cases passed · in agent_x.yaml, commit",
        "• one & two",
        "Baseline  This run",
        "144.50    a <b>",
        "▾ Shown",
        "inside",
        "▸ Folded: 3 rows",
        "the end",
    ]


def test_lines_are_short_and_gaps_small() -> None:
    lines = comment_view(f"{COMMENT}\n\n{'word ' * 100}\n\n# last")
    assert max(map(len, lines)) <= 76
    assert ("", "") not in list(itertools.pairwise(lines))
    assert lines[0]
    assert lines[-1]
