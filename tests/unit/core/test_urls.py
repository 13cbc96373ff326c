"""Addresses in messages: no secrets, one line; and what counts as an address of the web."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.escape import display_url, is_http_url

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a%20b.pdf", "https://example.org/a%20b.pdf"),
        ("https://me:secret@example.org:8080/a?sig=secret#part", "https://example.org:8080/a"),
        ("http://me:secret@agent:http/?key=secret", "http://agent:http/"),
        ("http://m@e:secret@[::1", "http://[::1"),
        ("http://[::1]:80/@me", "http://[::1]:80/@me"),
        ("http://agent/@me", "http://agent/@me"),
        ("http://agent:80/a:b@c", "http://agent:80/a:b@c"),
        ("http://me:sec/ret@agent/", "http://agent/"),
        ("http://me:sec?ret@agent/", "http://agent/"),
        ("http://me:sec#ret@agent/?a", "http://agent/"),
        ("HTTP://me:secret@agent/", "HTTP://agent/"),
        ("http:me:secret@agent/", "http:agent/"),
        (r"http:\\me:secret@agent/", r"http:\\agent/"),
        ("//me:secret@agent/", "//agent/"),
        ("/path:1@2?token=secret", "/path:1@2"),
        ("?token=secret", ""),
        ("#secret", ""),
        ("http://me:sec\x00ret@agent/\x1b[31m", "http://agent/"),
        ("http:\x00//me:secret@agent/", "http://agent/"),
        ("http://agent/\r\n::error::\u202e", "http://agent/ ::error::"),
        ("secret", "secret"),
        ("", ""),
    ],
)
def test_an_address_is_shown_in_one_line_without_secrets(url: str, shown: str) -> None:
    assert display_url(url) == shown


@given(
    st.sampled_from(["http://", "https://", "//", "HTTP:/", "http:"]),
    st.text(st.characters(exclude_characters="@"), max_size=10),
    st.text("/?#:[]\\\x1b %", max_size=5),
)
def test_a_password_is_never_shown(start: str, before: str, after: str) -> None:
    # Before the first colon stands the user; a host with a port and a path is one, too.
    user = "".join(character for character in before if character.isalnum())
    assert SECRET not in display_url(f"{start}{user}:{SECRET}{after}@host/")


def test_a_long_address_takes_no_long_time() -> None:
    started = time.process_time()
    for text in ("//a:x" * 20_000, "http://" + ":" * 100_000, "@" * 100_000, "http:" + "/" * 100_000, "a:" * 50_000):
        display_url(text)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("url", ["http://a", "https://a:1/b", "HTTPS://a", "http://[::1]/"])
def test_an_address_of_the_web(url: str) -> None:
    assert is_http_url(url)


@pytest.mark.parametrize("url", ["", "a", "ftp://a", "http:///a", "http://[::1", "file:///etc/passwd", "//a"])
def test_no_address_of_the_web(url: str) -> None:
    assert not is_http_url(url)
