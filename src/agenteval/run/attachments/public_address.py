"""Tells addresses of the internet from those of this machine and its networks."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# Gateways from IPv6 to IPv4 (RFC 6052); the last 32 bits are the IPv4 address.
_NAT64 = IPv6Network("64:ff9b::/96")
# The same within a network (RFC 8215).
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


def is_public(text: str) -> bool:
    """Return whether an IP address is one of the internet.

    Private networks, this machine, link-local addresses such as those of clouds' metadata services, shared addresses
    of providers (RFC 6598), multicast and reserved addresses are not. Neither are IPv6 addresses that contain one.

    Args:
        text: an address, with or without a zone (``fe80::1%eth0``).
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(str(inner))
        if address.is_site_local or address in _LOCAL_NAT64:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def public_names(host: str) -> bool:
    """Return whether all addresses of a host are public; true also for a name that this machine cannot resolve.

    The connection finds a name unknown too, or a proxy resolves it.

    Args:
        host: a name or an address.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(is_public(str(address[0])) for *_, address in found)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address to which packets to an IPv6 address go; ``None`` if they stay in IPv6."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
