"""The lines that a program writes, with a limit of their length."""

from __future__ import annotations

from collections.abc import Callable

#: The most that agenteval reads from a program as one line or reply, in bytes.
MOST_BYTES = 64 * 2**20

#: What a program with a longer line or reply did, for messages.
WROTE_TOO_MUCH = f"wrote more than {MOST_BYTES // 2**20} MiB"


class Lines:
    """Divides an output into lines, however it is divided into pieces.

    Args:
        on_line: receives each line without its end.
        on_excess: is called once if a line is longer than :data:`MOST_BYTES`; the rest of the output is discarded.
    """

    def __init__(self, on_line: Callable[[bytes], None], on_excess: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_excess = on_excess
        self._line = bytearray()
        self._is_discarding = False

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._extend(piece)
            if self._is_discarding:
                return
            self._on_line(bytes(self._line))
            self._line.clear()
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if self._is_discarding:
            return
        self._line += piece
        if len(self._line) > MOST_BYTES:
            self._is_discarding = True
            self._line.clear()
            self._on_excess()
