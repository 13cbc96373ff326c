"""HTML pages that load nothing and run only the built-in script."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator
from typing import Any

from agenteval.report.template_files import template_directory


def generate(template: str, *, interactive: bool = True, **values: Any) -> Iterator[str]:
    """Render a page piece by piece.

    Args:
        template: the name of a template that extends ``page.html.j2``.
        interactive: whether the page has its script.
        values: values for the template.
    """
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.html.filters import HTML
    from agenteval.report.templating import built_in_template

    style, script = _text("page.css"), _text("page.js") if interactive else ""
    yield from built_in_template(HTML, template).generate(
        style=style, script=script, policy=_policy(style, script), **values
    )


@functools.cache
def _text(name: str) -> str:
    return (template_directory() / "html" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a content security policy: nothing is loaded, and only the built-in style and script are allowed."""
    scripts = _digest(script) if script else "'none'"
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {scripts}; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
