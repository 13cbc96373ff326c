"""HTML pages that load nothing and run only the built-in script."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agenteval.report.template_files import template_directory


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The files of a page below ``templates/html``.

    Attributes:
        template: a template that extends ``page.html.j2``.
        styles: style sheets, in order.
        scripts: parts of the one script of the page, in order; empty for a page without a script.
    """

    template: str
    styles: tuple[str, ...] = ("page.css",)
    scripts: tuple[str, ...] = ()


def generate(files: PageFiles, **values: Any) -> Iterator[str]:
    """Render a page piece by piece.

    Args:
        files: its template, style and script.
        values: values for the template.
    """
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.html.filters import HTML
    from agenteval.report.templating import built_in_template

    style, script = "".join(map(_text, files.styles)), _script(files.scripts)
    yield from built_in_template(HTML, files.template).generate(
        style=style, script=script, policy=_policy(style, script), **values
    )


def _script(names: tuple[str, ...]) -> str:
    """Return the parts as one script; the block keeps their names out of the global scope."""
    return '"use strict";\n{\n' + "\n".join(_text(f"script/{name}") for name in names) + "}\n" if names else ""


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
