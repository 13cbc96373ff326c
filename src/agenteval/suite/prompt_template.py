"""Prompt templates: texts with names of fields between single braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from string import Formatter

#: Allowed names between braces, besides ``metadata.X`` for any field of the metadata.
PLACEHOLDERS = (
    "input",
    "output",
    "persona",
    "duration_ms",
    "metadata",
    "observations",
    "iteration",
    "trace_id",
    "history",
    "guidelines",
    "policy_context",
    "requirements",
    "supporting_data",
    "knowledge_base",
)
_METADATA = "metadata."
_FIELD = re.compile(r"[A-Za-z_]\w*(?:\.[\w-]+)*")
_BRACED = re.compile(rf"\{{({_FIELD.pattern})\}}")


def has_text(template: str | None) -> bool:
    """Return whether a template has content besides blank lines and comments (``#``)."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in (template or "").splitlines())


def template_warnings(template: str) -> Sequence[str]:
    """Return warnings for names in braces that are not replaced."""
    unknown = dict.fromkeys(name for name in _names(template) if not _is_known(name))
    warnings = [
        f"{{{name}}} is not a placeholder and stays unchanged; known: {', '.join(PLACEHOLDERS)}, metadata.X"
        for name in unknown
    ]
    if _format_pieces(template) is None and ("{" in (rest := _BRACED.sub("", template)) or "}" in rest):
        warnings.append("braces without a placeholder stay unchanged")
    return warnings


def pieces(template: str) -> Iterator[tuple[str, str | None]]:
    """Return the parts of a template in order: texts with ``None``, and names of placeholders with an empty text.

    Other names in braces stay unchanged. If every brace follows the rules of ``str.format``, doubled braces become
    single ones, as in FluxLoop.
    """
    for literal, name in _read(template):
        yield literal, None
        if name is not None:
            known = _is_known(name)
            yield ("", name) if known else (f"{{{name}}}", None)


def _format_pieces(template: str) -> list[tuple[str, str | None]] | None:
    """Parse as ``str.format`` does; return ``None`` if it would reject a brace."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError:
        return None
    fits = all(name is None or (_FIELD.fullmatch(name) and not spec and not how) for _, name, spec, how in parsed)
    return [(literal, name) for literal, name, _, _ in parsed] if fits else None


def _braced_pieces(template: str) -> Iterator[tuple[str, str | None]]:
    parts = _BRACED.split(template)
    for index in range(0, len(parts) - 1, 2):
        yield parts[index], parts[index + 1]
    yield parts[-1], None


def _names(template: str) -> Iterator[str]:
    for _, name in _read(template):
        if name is not None:
            yield name


def _is_known(name: str) -> bool:
    return name in PLACEHOLDERS or name.startswith(_METADATA)


def _read(template: str) -> Iterable[tuple[str, str | None]]:
    """Return texts, each with the following name in braces."""
    formatted = _format_pieces(template)
    return _braced_pieces(template) if formatted is None else formatted
