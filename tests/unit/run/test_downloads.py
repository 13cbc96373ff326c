"""Which addresses a redirect of a download may lead to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.run.downloads import is_public, public_names

PRIVATE = (
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.0.9", "169.254.169.254", "172.16.0.1", "172.31.9.9"),
    *("192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::", "2001::1", "::127.0.0.1"),
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("address", PRIVATE)
def test_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_the_same(address: object) -> None:
    expected = is_public(str(address))
    assert is_public(f"::ffff:{address}") is expected
    assert is_public(f"64:ff9b::{address}") is expected


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "localhost", "::1"])
def test_every_way_to_write_this_machine(host: str) -> None:
    assert not public_names(host)


@pytest.mark.parametrize("host", ["nobody.invalid", "a" * 300, "a..b"])
def test_a_name_that_is_unknown(host: str) -> None:
    assert public_names(host)
