"""GitHub's Markdown, as its parser renders it, and what may be in a page of ours."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from lxml import html

from agenteval.core.version import DOCUMENTATION

_CMARK = ["cmark-gfm", "--unsafe", "--github-pre-lang"]
_EXTENSIONS = ["table", "strikethrough", "autolink", "tagfilter", "tasklist", "footnotes"]
#: Elements that our templates contain.
OURS = {
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "p",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
    "code",
}
OURS |= {"details", "summary", "b", "i", "br", "sub", "span", "a", "del", "ins", "strong", "blockquote", "input"}
# What rehype-sanitize, whose default schema follows GitHub, lets through of it; "open" is not among it.
_ATTRIBUTES = {"a": {"href"}, "td": {"align"}, "th": {"align"}, "details": {"open"}, "pre": {"lang"}}
_ATTRIBUTES |= {"input": {"type", "disabled"}}  # of a task list
_LINK = re.compile(
    r"https://github\.com/acme/widgets/(?:blob/[0-9a-f]{40}/[^\s\"<>?]*|actions/runs/\d+(?:#artifacts)?)"
    # The help of a mistake.
    rf"|{re.escape(DOCUMENTATION)}/troubleshooting\.md#[a-z-]+"
)
# GitHub looks for references in the text of the rendered page, but not inside code.
REFERENCE = re.compile(r"(?:^|\W)(?:@[a-z0-9]|[\w/-]{0,80}#\d|gh-\d|[0-9a-f]{7,40}\b)", re.IGNORECASE)


def cmark(text: str, hardbreaks: bool) -> str:
    """Return the HTML of Markdown; in comments GitHub makes a line break of every line feed."""
    extensions = [argument for name in _EXTENSIONS for argument in ("-e", name)]
    command = [*_CMARK, *extensions, *(["--hardbreaks"] if hardbreaks else [])]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def rendered(text: str, hardbreaks: bool) -> Any:
    """Return the elements of a page, in a ``div``."""
    return html.fragment_fromstring(cmark(text, hardbreaks), create_parent="div")


def texts_outside_code(page: Any) -> list[str]:
    """Return the texts in which GitHub looks for references."""
    return [str(text) for text in page.xpath(".//text()[not(ancestor::code) and not(ancestor::pre)]")]


def assert_only_ours(page: Any) -> None:
    """Fail if the page has an element, attribute, link, comment or reference that no template of ours makes."""
    elements = {element.tag for element in page.iter() if isinstance(element.tag, str)} - {"div"}
    assert elements <= OURS
    for element in page.iter():
        assert set(element.attrib) <= _ATTRIBUTES.get(element.tag, set())
        assert element.tag != "a" or _LINK.fullmatch(element.get("href", ""))
    assert not list(page.iter(html.etree.Comment))
    assert [text for text in texts_outside_code(page) if REFERENCE.search(text)] == []
