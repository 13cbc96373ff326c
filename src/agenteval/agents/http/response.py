"""What an HTTP service answers."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

# More is no answer of an agent; a reply without end must not fill the memory.
MAX_BYTES = 50 * 2**20
# Too often, and what proxies say of a service that is not there just now.
PASSING = frozenset({429, 502, 503, 504})
# Encodings of domain names: a long text takes for ever.
_OF_NAMES = frozenset({"idna", "punycode"})
_GZIP = zlib.MAX_WBITS | 16


class HttpError(Exception):
    """An exchange that failed.

    Args:
        message: what happened, to be read after the name of the service.
        passing: another attempt may succeed.
    """

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole response.

    Attributes:
        status: 200 to 599, as a rule.
        reason: what the service calls the status; often empty.
        headers: by name in lower case; values of one name are joined with ``, ``.
        content: the body, unpacked.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the service did what it was asked."""
        return 200 <= self.status < 300

    @property
    def is_client_error(self) -> bool:
        """Whether the service blames the request."""
        return 400 <= self.status < 500

    @property
    def location(self) -> str | None:
        """Where a redirect leads."""
        return self.headers.get("location") if self.status in {301, 302, 303, 307, 308} else None


def text_of(response: HttpResponse) -> str:
    """The text of a response, in the encoding that it names if that is one and fits, else in UTF-8."""
    encoding = _charset(response.headers.get("content-type", "")) or "utf-8"
    try:
        # Python's codecs that unpack data are no encodings: decode() refuses them.
        if codecs.lookup(encoding).name not in _OF_NAMES:
            return response.content.decode(encoding, "replace")
    except (LookupError, ValueError):
        pass
    return response.content.decode("utf-8", "replace")


def _charset(content_type: str) -> str | None:
    if "charset" not in content_type.lower():
        return None
    from email.message import Message

    message = Message()
    message["content-type"] = content_type
    return message.get_content_charset()


def unpacked(content: bytes, encodings: str) -> bytes:
    """A body without the encodings of ``Content-Encoding`` that were asked for: gzip and deflate (RFC 9110, 8.4).

    Others are left alone: some services name there what is none.

    Raises:
        HttpError: it is not what it is said to be, or grows beyond ``MAX_BYTES``.
    """
    for name in reversed(encodings.lower().split(",")):
        encoding = name.strip()
        if not content or encoding not in {"gzip", "x-gzip", "deflate"}:
            continue
        try:
            content = _inflated(content, zlib.MAX_WBITS if encoding == "deflate" else _GZIP)
        except zlib.error as error:
            raise HttpError(f"sent what is not {encoding}: {error}", passing=False) from None
    return content


def _inflated(content: bytes, bits: int) -> bytes:
    try:
        inflated = zlib.decompressobj(bits).decompress(content, MAX_BYTES + 1)
    except zlib.error:
        # Many services send "deflate" without the header that belongs to it.
        if bits != zlib.MAX_WBITS:
            raise
        inflated = zlib.decompressobj(-bits).decompress(content, MAX_BYTES + 1)
    if len(inflated) > MAX_BYTES:
        raise too_long()
    return inflated


def too_long() -> HttpError:
    """The response that has no end."""
    return HttpError(f"answered more than {MAX_BYTES // 2**20} MiB", passing=False)
