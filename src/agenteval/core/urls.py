"""Addresses of the web, as messages and reports show them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from agenteval.core.text.escape import one_line

# User and password end at the last @ of the host's part. A password may contain /, ? and #: then what stands
# before them looks like a host with a port that is not a number.
_USER = re.compile(
    r"""
      ^ ( https?: [/\\]* | [^/?\#]* [/\\]{2,} )
      (?: [^/?\#]* @ | [^/?\#@:\[\]]* : (?! \d* (?: [/?\#] | $ ) ) [^@]* @ )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def display_url(url: str) -> str:
    """Return an address, valid or not, in one line without user, password, query and fragment: they may be secret."""
    # Before and after: control sequences may contain or separate the characters that delimit a password.
    shown = _without_user(one_line(_without_user(url)))
    return re.split("[?#]", shown, maxsplit=1)[0]


def _without_user(url: str) -> str:
    return _USER.sub(r"\1", url)


def is_http_url(url: str) -> bool:
    """Return whether an address has the scheme http or https, and a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
