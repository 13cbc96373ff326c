from __future__ import annotations

import pytest

from agenteval.report.user_template import unclosed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain <b>text",
        "```text\n<details>\n```\n",
        "`````\n```\n`````",
        "~~~\n```\n~~~",
        "<details><summary>a</summary>\n\nb\n\n</details>",
        "<!-- a -->",
        "``` not `a` fence",
        "    ```",
    ],
)
def test_closed(text: str) -> None:
    assert unclosed(text) == ""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("```text\n</details>", "a code fence (```)"),
        ("````\n```", "a code fence (````)"),
        ("~~~~\n~~~", "a code fence (~~~~)"),
        ("```\n``` text", "a code fence (```)"),
        ("<details>", "an element (<details>)"),
        ("<details><summary>a</details></summary>", "closed too often or in another order (</details>)"),
        ("</DETAILS>", "closed too often or in another order (</DETAILS>)"),
        ("<!-- a", "an HTML comment (<!--)"),
        ("<details>\n```\n</details>\n```", "an element (<details>)"),
    ],
)
def test_open(text: str, what: str) -> None:
    assert what in unclosed(text)
