"""Responses of HTTP services, and the error of a failed exchange."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass

# Limit of a decompressed body in bytes, so that an endless response cannot fill the memory.
MAX_BYTES = 50 * 2**20
# Too many requests, and the replies of proxies while the service is unavailable.
TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
# Text types of pages and documents for programs.
_MARKUP = frozenset({"text/html", "text/xml"})
# Encodings of domain names, which are excluded: decoding a long text takes quadratic time.
_OF_NAMES = frozenset({"idna", "punycode"})


class HttpError(Exception):
    """A failed exchange.

    Args:
        message: what failed; callers put the name of the service before it.
        is_transient: whether another attempt may succeed.
    """

    def __init__(self, message: str, *, is_transient: bool) -> None:
        super().__init__(message)
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response.

    Attributes:
        status: usually 200 to 599.
        reason: the service's name for the status; often empty.
        headers: by name in lower case; values of one name are joined with ``, ``.
        content: the decompressed body.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def is_client_error(self) -> bool:
        """Whether the status is 4xx: the service rejects the request."""
        return 400 <= self.status < 500

    @property
    def location(self) -> str | None:
        """The target of a redirect; ``None`` for other responses."""
        return self.headers.get("location") if self.status in {301, 302, 303, 307, 308} else None


def text_of(response: HttpResponse) -> str:
    """Return the body as text, decoded with the charset that the response names if Python knows it, else as UTF-8."""
    encoding = _charset(response.headers.get("content-type", "")) or "utf-8"
    try:
        # decode() rejects codecs that are not text encodings, such as zlib.
        if codecs.lookup(encoding).name not in _OF_NAMES:
            return response.content.decode(encoding, "replace")
    except (LookupError, ValueError):
        pass
    return response.content.decode("utf-8", "replace")


def media_type(response: HttpResponse) -> str:
    """Return the type of a response's content, without its parameters; empty without one."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_text(response: HttpResponse) -> bool:
    """Return whether the content is text that people read: a text type other than HTML and XML."""
    kind = media_type(response)
    return kind.startswith("text/") and kind not in _MARKUP


def _charset(content_type: str) -> str | None:
    if "charset" not in content_type.lower():
        return None
    from email.message import Message

    message = Message()
    message["content-type"] = content_type
    return message.get_content_charset()
