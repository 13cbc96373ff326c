"""A hook of MkDocs: links out of ``docs/`` lead to the repository, so that a page works on GitHub and on the site."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_OUTSIDE = re.compile(r"\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, config: Any, page: Any, **_: Any) -> str:
    """The page with its links to files beside ``docs/`` made absolute.

    Args:
        markdown: the page's text.
        config: MkDocs' settings, of which ``repo_url`` counts.
        page: the page, which knows its place in ``docs/``.
    """
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def absolute(match: re.Match[str]) -> str:
        path, mark, anchor = match[1].partition("#")
        kind = "blob" if "." in posixpath.basename(path) else "tree"
        target = posixpath.normpath(posixpath.join(folder, path))
        return f"]({config['repo_url']}/{kind}/main/{target}{mark}{anchor})"

    return _OUTSIDE.sub(absolute, markdown)
