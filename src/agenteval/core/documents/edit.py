"""Replaces single texts in a file, and leaves every other byte of it as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from agenteval.core.documents.document import VARIABLE, KeyPath, dotted
from agenteval.core.errors import AgentEvalError

#: The new text of each value, by its key path.
Replacements = Mapping[tuple[str | int, ...], str]


class NotReplaceableError(AgentEvalError):
    """A text cannot be replaced safely.

    Args:
        keys: its key path; empty if the file as a whole is the reason.
        why: continues "it".
        line: 1-based line of the value.
    """

    def __init__(self, keys: KeyPath, why: str, line: int | None = None) -> None:
        self.keys, self.why, self.line = keys, why, line
        super().__init__(f"{dotted(keys)} {why}".strip())


def double_quoted(text: str) -> str:
    """Return a text in double quotes, on one line, as YAML and TOML both read it."""
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def line_end(source: str) -> str:
    """Return how the lines of a text end: those of its first line."""
    found = re.search("\r?\n", source)
    return found.group() if found else "\n"


def without_variables(source: str, text: str, keys: KeyPath, line: int) -> None:
    """Check that neither the old nor the new text contains a variable, which the reader of the file would replace.

    Raises:
        NotReplaceableError: one of them does.
    """
    if VARIABLE.search(source):
        raise NotReplaceableError(keys, "contains a variable like ${NAME}", line)
    if (found := VARIABLE.search(text)) is not None:
        raise NotReplaceableError(keys, f"cannot take the answer, which contains the variable {found.group()}", line)
