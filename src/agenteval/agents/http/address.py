"""Addresses of HTTP services and the proxies of the environment."""

from __future__ import annotations

import os
import re
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from agenteval.core.urls import display_url

if TYPE_CHECKING:
    from yarl import URL

_SCHEMES = ("http", "https")
_HOST = re.compile(r"[!$&'()*+,;=\w.~%-]+", re.ASCII)
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """A valid address.

    Attributes:
        url: percent-encoded, without user and password.
        credentials: the value of ``Authorization`` for the address's user and password; empty without them.
    """

    url: URL
    credentials: str = ""

    @property
    def is_secure(self) -> bool:
        """Whether it uses TLS."""
        return self.url.scheme == "https"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return str(self.url.origin())


def read_address(url: str) -> Address:
    """Parse an address.

    Raises:
        ValueError: it is not a valid HTTP address; the message contains neither user nor password.
    """
    # Imported here: only HTTP agents need it.
    from yarl import URL

    if not url.isprintable() or url != url.strip():
        raise ValueError("it contains control characters, or begins or ends with a space")
    if not url.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES)):
        raise ValueError("it must begin with http:// or https://")
    try:
        parsed = URL(url)
        host, port = parsed.raw_host or "", parsed.port
    except ValueError:
        # The library's message can contain the password.
        raise ValueError("it needs a host, and its port must be a number from 1 to 65535") from None
    if not host or not port:
        raise ValueError("it needs a host, and its port must be a number from 1 to 65535")
    if ":" in host or _IPV4.fullmatch(host):
        ip_address(host)
    elif not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is not a host name")
    return Address(parsed.with_user(None).with_fragment(None), _credentials(parsed))


def proxy_of(address: Address) -> Address | None:
    """Return the proxy that the environment names for an address.

    ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``ALL_PROXY`` name proxies, ``NO_PROXY`` the hosts that need none; on macOS
    and Windows the system's settings count too.

    Raises:
        ValueError: the proxy cannot be used; the message contains no password.
    """
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Imported here: it loads an HTTP client.
    from urllib.request import getproxies, proxy_bypass

    proxies: Mapping[str, str] = getproxies()
    url = proxies.get(address.url.scheme) or proxies.get("all")
    host = address.url.raw_host or ""
    if not url or proxy_bypass(host) or proxy_bypass(f"{address.url.host_subcomponent}:{address.url.port}"):
        return None
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme.startswith("socks"):
        raise ValueError(f"SOCKS proxies ({scheme}://) are not supported; http:// and https:// are")
    if scheme not in _SCHEMES:
        raise ValueError(f"Unknown scheme for proxy: {scheme}://; http:// and https:// are allowed")
    try:
        return read_address(url)
    except ValueError as error:
        raise ValueError(f"the proxy {display_url(url)!r} is not a valid address: {error}") from None


def _credentials(url: URL) -> str:
    """Basic authentication (RFC 7617)."""
    if not url.user and not url.password:
        return ""
    pair = f"{url.user or ''}:{url.password or ''}"
    return f"Basic {b64encode(pair.encode()).decode('ascii')}"
