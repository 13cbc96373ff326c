"""MkDocs hook: points links to files outside ``docs/`` at the repository, so they work on GitHub and on the site."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_OUTSIDE = re.compile(r"\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, config: Any, page: Any, **_: Any) -> str:
    """Return the page with absolute links to files outside ``docs/``.

    Args:
        markdown: text of the page.
        config: MkDocs' settings, with ``repo_url``.
        page: the page, with its path in ``docs/``.
    """
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def absolute(match: re.Match[str]) -> str:
        path, mark, anchor = match[1].partition("#")
        target = posixpath.normpath(posixpath.join(folder, path))
        if target.startswith("docs/"):
            return match[0]
        kind = "blob" if "." in posixpath.basename(path) else "tree"
        return f"]({config['repo_url']}/{kind}/main/{target}{mark}{anchor})"

    return _OUTSIDE.sub(absolute, markdown)
