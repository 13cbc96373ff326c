"""Where an HTTP service is, and the proxy on the way there."""

from __future__ import annotations

import os
import re
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, quote, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
# The others are percent-encoded (WHATWG URL, "path percent-encode set", "query percent-encode set").
_IN_PATHS = "".join(set(_VISIBLE) - set('"#<>?`{}'))
_IN_QUERIES = "".join(set(_VISIBLE) - set('"#<>'))
_HOST = re.compile(r"[!$&'()*+,;=\w.~%-]+", re.ASCII)
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)
_USER = re.compile(r"(?<=//)[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Address:
    """An address, taken apart and ready to be sent.

    Attributes:
        scheme: ``http`` or ``https``.
        host: a name in ASCII or an IP address, IPv6 without brackets.
        port: 1 to 65535.
        path: path and query, percent-encoded.
        credentials: what ``Authorization`` says for the user and password of the address; empty without any.
    """

    scheme: str
    host: str
    port: int
    path: str
    credentials: str = ""

    @property
    def is_secure(self) -> bool:
        """Whether it is spoken to over TLS."""
        return self.scheme == "https"

    @property
    def host_and_port(self) -> str:
        """As ``CONNECT`` names it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        """As ``Host`` names it: without the port that goes without saying."""
        return self.host_and_port.removesuffix(f":{_PORTS[self.scheme]}")

    @property
    def origin(self) -> str:
        """Scheme, host and port, as people know them."""
        return f"{self.scheme}://{self.authority}"


def read_address(url: str) -> Address:
    """Take an address apart.

    Raises:
        ValueError: it is no address of HTTP; the message says why.
    """
    if not url.isprintable() or url != url.strip():
        raise ValueError("it holds control characters or begins or ends with a space")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError("it must begin with http:// or https://")
    try:
        port = parts.port
    except ValueError:
        # Its own message shows the text, which is the password where that holds a "#" or "/".
        port = 0
    if port == 0:
        raise ValueError("its port is no number from 1 to 65535")
    path = quote(_without_dots(parts.path), safe=_IN_PATHS) or "/"
    query = f"?{quote(parts.query, safe=_IN_QUERIES)}" if parts.query else ""
    return Address(
        scheme=parts.scheme,
        host=_host(parts.hostname or ""),
        port=port or _PORTS[parts.scheme],
        path=path + query,
        credentials=_credentials(parts),
    )


def without_secrets(url: str) -> str:
    """What may be shown of an address that cannot be read: neither its user nor its query."""
    return _USER.sub("", url.partition("?")[0])


def proxy_of(address: Address) -> Address | None:
    """The proxy that the environment wants between here and an address.

    ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``ALL_PROXY`` name it, ``NO_PROXY`` the hosts that need none; on macOS and
    Windows also the settings of the system.

    Raises:
        ValueError: that proxy cannot be used; the message says why.
    """
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Imported here: it brings a client of its own.
    from urllib.request import getproxies, proxy_bypass

    proxies: Mapping[str, str] = getproxies()
    url = proxies.get(address.scheme) or proxies.get("all")
    if not url or proxy_bypass(address.host) or proxy_bypass(address.host_and_port):
        return None
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme.startswith("socks"):
        raise ValueError(f"SOCKS proxies ({scheme}://) are not supported; http:// and https:// are")
    if scheme not in _PORTS:
        raise ValueError(f"Unknown scheme for proxy: {scheme}://; http:// and https:// are allowed")
    try:
        return read_address(url)
    except ValueError as error:
        raise ValueError(f"the proxy {without_secrets(url)!r} is not a valid address: {error}") from None


def _host(name: str) -> str:
    """A host as it is looked up and sent."""
    if not name:
        raise ValueError("it names no host")
    if ":" in name:
        return str(IPv6Address(name))
    if not name.isascii():
        import idna

        # An error of idna's is a UnicodeError, and so a ValueError.
        return idna.encode(name).decode("ascii")
    if not _HOST.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a host")
    if _IPV4.fullmatch(name):
        return str(IPv4Address(name))
    return name


def _credentials(parts: SplitResult) -> str:
    """Basic authentication (RFC 7617)."""
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user and not password:
        return ""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def _without_dots(path: str) -> str:
    """A path without ``.`` and ``..`` (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment not in {".", ".."}:
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/".join(kept)
