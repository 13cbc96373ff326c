"""``agenteval plugins``: the installed extensions, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from agenteval.core.plugins import ALLOWED_VARIABLE, Plugin
from agenteval.core.text.escape import terminal

_HEAD = ("NAME", "GROUP", "DISTRIBUTION", "VERSION", "MAY RUN")


def as_json(plugins: Iterable[Plugin]) -> str:
    """Render extensions as a JSON list."""
    return json.dumps([asdict(plugin) for plugin in plugins], indent=2)


def as_table(plugins: Iterable[Plugin]) -> str:
    """Render extensions as aligned columns."""
    rows = [tuple(map(terminal, _cells(plugin))) for plugin in plugins]
    if not rows:
        return "no extensions are installed beside agenteval"
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *rows))
    return "\n".join(line.rstrip() for line in lines)


def _cells(plugin: Plugin) -> tuple[str, str, str, str, str]:
    if plugin.allowed:
        allowed = "yes"
    elif "." not in plugin.name:
        allowed = "no: the name needs a dot"
    else:
        allowed = f"no: not in {ALLOWED_VARIABLE}"
    return plugin.name, plugin.group, plugin.distribution, plugin.version, allowed
