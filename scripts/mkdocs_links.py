"""MkDocs hook: links and pictures that work on GitHub work on the site, too.

Links to files outside ``docs/`` lead to the repository. Paths in HTML, which MkDocs does not convert, lead from the
directory of the page.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_OUTSIDE = re.compile(r"\]\((\.\./[^)\s]+)\)")
_PICTURE = re.compile(r'((?:src|srcset)=")(pictures/)')


def on_page_markdown(markdown: str, *, config: Any, page: Any, **_: Any) -> str:
    """Return the page with links and paths as the site needs them.

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

    # Each page but the first has a separate directory.
    above = "" if posixpath.basename(page.file.src_uri) == "index.md" else "../"
    return _PICTURE.sub(rf"\1{above}\2", _OUTSIDE.sub(absolute, markdown))
