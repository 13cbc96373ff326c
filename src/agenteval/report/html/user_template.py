"""Replaces the placeholders of a user's HTML template for the analysis of a suite, as FluxLoop defines them.

``[[TITLE]]``, ``[[DATE]]``, ``[[SUBTITLE]]`` and ``[[LOGO_DATA_URI]]`` are HTML text; ``[[SUMMARY_JSON]]``,
``[[PER_TRACE_JSON]]``, ``[[CRITERIA_JSON]]`` and ``[[ANALYSIS_JSON]]`` are JSON that is safe inside a script element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenteval.core.files.reading import read_regular
from agenteval.core.paths import display_path
from agenteval.core.text.escape import html
from agenteval.report.template_files import UserTemplateError

_PLACEHOLDER = re.compile(r"\[\[([A-Z_]+)\]\]")
# Characters that can end a script element or open a comment in it, and line ends of older JavaScript.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 10_000_000  # bytes of a template
_LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="11" fill="#2563eb"/>'
    '<path d="M7 12.5l3.5 3.5L17 9" fill="none" stroke="#fff" stroke-width="2.5"/></svg>'
)
LOGO_DATA_URI = f"data:image/svg+xml,{quote(_LOGO)}"


def read_user_template(path: Path) -> str:
    """Read a user's HTML template.

    Raises:
        UserTemplateError: it cannot be read, or is not UTF-8.
    """
    try:
        return read_regular(path, limit=_LARGEST).decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "cannot be read: it is not UTF-8"
    raise UserTemplateError(Path(display_path(path)), reason)


def fill(
    template: str, texts: Mapping[str, str], summary: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]
) -> str:
    """Return the template with every placeholder replaced once; placeholders inside values are not replaced.

    Args:
        template: HTML. Unknown placeholders stay as they are.
        texts: ``TITLE``, ``DATE`` and ``SUBTITLE``.
        summary: the content of summary.json.
        traces: lines of per_trace.jsonl.
    """
    data = {
        "SUMMARY_JSON": summary,
        "PER_TRACE_JSON": traces,
        "CRITERIA_JSON": summary.get("success_criteria_results") or {},
        "ANALYSIS_JSON": summary.get("analysis") or {},
    }
    values = {name: html(text) for name, text in texts.items()} | {"LOGO_DATA_URI": LOGO_DATA_URI}
    # Only the placeholders in the template are computed, because all traces of a large run take long.
    for name in data.keys() & set(_PLACEHOLDER.findall(template)):
        values[name] = script_json(data[name])
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def script_json(value: Any) -> str:
    """Return JSON for a script element, without markup and without characters that UTF-8 cannot encode."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_UNSAFE)
    return _SURROGATE.sub("\ufffd", text)
