"""The end of a program's error output, for messages."""

from __future__ import annotations

from agenteval.core.masking import redactor

_KEPT = 64 * 1024

_SHOWN = 400


class LastOutput:
    """Keeps the end of an output, however it is divided into pieces."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_cut = False

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        self._data += data
        if len(self._data) > 2 * _KEPT:
            del self._data[:-_KEPT]
            self._is_cut = True

    def text(self) -> str:
        """Return the end of the output as one line without secrets."""
        text, redact = self._data.decode("utf-8", "replace"), redactor()
        if self._is_cut:
            text = text[redact.remains(text) :]
        line = " ".join(redact(text).split())
        return line if len(line) <= _SHOWN else "…" + line[-_SHOWN:]
