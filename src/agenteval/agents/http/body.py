"""Bodies of HTTP responses, unpacked as they arrive."""

from __future__ import annotations

import zlib

from agenteval.agents.http.response import MAX_BYTES, HttpError
from agenteval.core.masking import shortened

_SHOWN = 300
# Window sizes as zlib takes them; services also send deflate without zlib's header.
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_RAW = -zlib.MAX_WBITS
_ZLIB_METHOD = 8
# The names of packed encodings.
_PACKED = frozenset({*_WINDOWS, "x-gzip", "compress", "x-compress", "br", "zstd"})


class Body:
    """The body of one response. A packed or incomplete body must never be taken for an answer.

    Args:
        encoding: the value of ``Content-Encoding``; services also name charsets there, whose bodies are plain.

    Raises:
        HttpError: the encoding is not one that agenteval asks for.
    """

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in _WINDOWS and not _PACKED.isdisjoint(part.strip() for part in name.split(",")):
            raise HttpError(
                f"sent a body with `Content-Encoding: {shortened(name, _SHOWN)}`, which is not supported; "
                "it must send identity, gzip or deflate, as `Accept-Encoding` asks",
                is_transient=False,
            )
        self._encoding = name if name in _WINDOWS else ""
        self._member: zlib._Decompress | None = None
        self._content = bytearray()

    def add(self, piece: bytes) -> None:
        """Take the next piece as received.

        Raises:
            HttpError: it cannot be unpacked, or the content is too large.
        """
        if not self._encoding:
            self._extend(piece)
        while self._encoding and piece:
            piece = self._unpack(piece)

    def complete(self) -> bytes:
        """Return the content.

        Raises:
            HttpError: the packed body is incomplete.
        """
        if self._member is not None:
            raise HttpError(f"broke off: its {self._encoding} body is incomplete", is_transient=True)
        return bytes(self._content)

    def _unpack(self, piece: bytes) -> bytes:
        """Unpack as far as one member reaches (a gzip body may have several), and return the rest."""
        member = self._member or zlib.decompressobj(self._window(piece[0]))
        try:
            unpacked = member.decompress(piece, MAX_BYTES + 1 - len(self._content))
        except zlib.error as error:
            raise HttpError(
                f"sent a {self._encoding} body that cannot be unpacked: {error}", is_transient=False
            ) from None
        self._extend(unpacked)
        self._member = None if member.eof else member
        return member.unused_data

    def _window(self, first: int) -> int:
        has_no_header = self._encoding == "deflate" and first & 0xF != _ZLIB_METHOD
        return _RAW if has_no_header else _WINDOWS[self._encoding]

    def _extend(self, content: bytes) -> None:
        self._content += content
        if len(self._content) > MAX_BYTES:
            raise too_large()


def too_large() -> HttpError:
    """Return the error of a response that is too large."""
    return HttpError(f"answered more than {MAX_BYTES // 2**20} MiB", is_transient=False)
