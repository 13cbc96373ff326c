"""Links out of docs/ lead to the repository on the site, pictures in HTML are found, and all else stays as it is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scripts.mkdocs_links import on_page_markdown

CONFIG = {"repo_url": "https://github.com/org/agenteval-action"}


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("../README.md#the-gate", "https://github.com/org/agenteval-action/blob/main/README.md#the-gate"),
        (
            "../schemas/reply.schema.json",
            "https://github.com/org/agenteval-action/blob/main/schemas/reply.schema.json",
        ),
        ("../examples/workflows", "https://github.com/org/agenteval-action/tree/main/examples/workflows"),
        ("gate.md#options", "gate.md#options"),
        ("https://example.org/../a", "https://example.org/../a"),
    ],
)
def test_links(link: str, expected: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="gate.md"))
    assert on_page_markdown(f"See [this]({link}).", config=CONFIG, page=page) == f"See [this]({expected})."


@pytest.mark.parametrize(("page", "path"), [("index.md", "pictures/a.svg"), ("reports.md", "../pictures/a.svg")])
def test_pictures_in_html_are_found_from_the_directory_of_the_page(page: str, path: str) -> None:
    text = '<source srcset="pictures/a.svg"><img alt="A pictures/ path" src="pictures/a.svg">'
    expected = f'<source srcset="{path}"><img alt="A pictures/ path" src="{path}">'
    file = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    assert on_page_markdown(text, config=CONFIG, page=file) == expected
