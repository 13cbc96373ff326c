"""Addresses, proxies and responses of HTTP services."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents.http_response import Address, HttpResponse, proxy_of, read_address, text_of_response


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("http://agent", "agent", 80, "/", "agent"),
        ("https://agent", "agent", 443, "/", "agent"),
        ("HTTP://Agent.Example.COM:80/Chat", "agent.example.com", 80, "/Chat", "agent.example.com"),
        ("http://agent:443/", "agent", 443, "/", "agent:443"),
        ("http://agent:/", "agent", 80, "/", "agent"),
        ("http://127.0.0.1:8000/a?b=c#d", "127.0.0.1", 8000, "/a?b=c", "127.0.0.1:8000"),
        ("http://[::1]:8000/", "::1", 8000, "/", "[::1]:8000"),
        ("https://[2001:DB8::1]/", "2001:db8::1", 443, "/", "[2001:db8::1]"),
        ("http://agent?q=1", "agent", 80, "/?q=1", "agent"),
        ("http://bücher.example/", "xn--bcher-kva.example", 80, "/", "xn--bcher-kva.example"),
        ("http://my_agent/", "my_agent", 80, "/", "my_agent"),
        ("http://agent/two words/ü?q=a b&x[0]=ü", "agent", 80, "/two%20words/%C3%BC?q=a+b&x%5B0%5D=%C3%BC", "agent"),
        ("http://agent/a%20b%2Fc", "agent", 80, "/a%20b%2Fc", "agent"),
        ("http://agent/a/./b/../c/..", "agent", 80, "/a/", "agent"),
        ("http://agent/../../etc", "agent", 80, "/etc", "agent"),
        ("http://agent//double", "agent", 80, "//double", "agent"),
    ],
)
def test_takes_an_address_apart(url: str, host: str, port: int, path: str, authority: str) -> None:
    address = read_address(url)
    sent = address.url
    assert (sent.raw_host, sent.port, sent.raw_path_qs, sent.host_port_subcomponent) == (host, port, path, authority)
    assert address.is_secure == url.lower().startswith("https")
    assert address.origin == f"{sent.scheme}://{authority}"


@pytest.mark.parametrize(
    ("url", "pair"),
    [
        ("http://me:secret@agent/", "me:secret"),
        ("http://me@agent/", "me:"),
        ("http://:secret@agent/", ":secret"),
        ("http://m%40e:s%3Acret@agent/", "m@e:s:cret"),
        ("http://m@e:ü@agent/", "m@e:ü"),
    ],
)
def test_user_and_password_become_basic_authentication(url: str, pair: str) -> None:
    address = read_address(url)
    assert str(address.url) == "http://agent/"
    assert address.credentials == "Basic " + base64.b64encode(pair.encode()).decode()


def test_without_a_user_there_are_no_credentials() -> None:
    assert read_address("http://agent/").credentials == ""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "must begin with http://"),
        ("agent.example.com/chat", "must begin with http://"),
        ("ftp://agent/", "must begin with http://"),
        ("http://", "host, and its port must be a number from 1 to 65535"),
        ("http://a b/", "'a b' is not a host name"),
        ("http://agent:http/", "host, and its port must be a number from 1 to 65535"),
        ("http://agent:65536/", "host, and its port must be a number from 1 to 65535"),
        ("http://agent:0/", "host, and its port must be a number from 1 to 65535"),
        ("http://[::1", "host, and its port must be a number from 1 to 65535"),
        ("http://[::g]/", "::g"),
        ("http://256.0.0.1/", "256"),
        ("http://\u2100:secret@agent/", "host, and its port must be a number from 1 to 65535"),
        ("http://agent/\nHost: other", "control characters"),
        ("http://agent/\ud800", "control characters"),
        (" http://agent/", "begins or ends with a space"),
    ],
)
def test_messages_about_invalid_addresses(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        read_address(url)


@given(st.text(), st.sampled_from(["", "http://", "https://", "http://agent/", "http://agent:8/?", "http://u@"]))
def test_every_text_is_an_address_that_can_be_sent_or_is_refused(text: str, start: str) -> None:
    try:
        address = read_address(start + text)
    except ValueError:
        return
    sent = f"{address.url.raw_host}{address.url.raw_path_qs}{address.credentials.replace(' ', '')}"
    assert sent.isascii()
    assert sent.isprintable()
    assert " " not in sent
    assert address.url.raw_path.startswith("/")
    assert read_address(str(address.url)) == Address(address.url)


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://agent/", None),
        ({"HTTP_PROXY": "http://proxy:1"}, "http://agent/", "http://proxy:1"),
        ({"http_proxy": "http://proxy:1"}, "http://agent/", "http://proxy:1"),
        ({"HTTP_PROXY": "proxy:1"}, "http://agent/", "http://proxy:1"),
        ({"HTTP_PROXY": "http://proxy:1"}, "https://agent/", None),
        ({"HTTPS_PROXY": "https://proxy:1"}, "https://agent/", "https://proxy:1"),
        ({"ALL_PROXY": "http://proxy:1"}, "https://agent/", "http://proxy:1"),
        ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": "http://proxy:1"}, "http://agent/", "http://proxy:1"),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "agent"}, "http://agent/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "*"}, "http://agent/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "other,example.com"}, "http://a.example.com/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "ample.com"}, "http://example.com/", "http://proxy:1"),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "127.0.0.1"}, "http://127.0.0.1:8/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "::1"}, "http://[::1]:8/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "agent:8"}, "http://agent:8/", None),
        ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "agent:8"}, "http://agent:9/", "http://proxy:1"),
        # A bad proxy that is not needed has no effect.
        ({"HTTPS_PROXY": "gopher://proxy:1"}, "http://agent/", None),
        ({"HTTP_PROXY": "socks5://proxy:1", "NO_PROXY": "agent"}, "http://agent/", None),
    ],
)
def test_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxy_of(read_address(url))
    assert (found and found.origin) == proxy


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("socks5://me:secret@proxy:1", r"SOCKS proxies \(socks5://\) are not supported"),
        ("gopher://me:secret@proxy:1", "Unknown scheme for proxy: gopher://; http:// and https:// are allowed"),
        ("http://me:secret@proxy:port", "the proxy 'http://proxy:port' is not a valid address"),
    ],
)
def test_messages_about_invalid_proxies(monkeypatch: pytest.MonkeyPatch, url: str, said: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    with pytest.raises(ValueError, match=said) as caught:
        proxy_of(read_address("http://agent/"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content_type", "content", "text"),
    [
        ("text/plain", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=latin-1", "Grüße".encode("latin-1"), "Grüße"),
        ('text/plain; Charset="ISO-8859-1"', "Grüße".encode("latin-1"), "Grüße"),
        ("text/plain; charset=utf-16", "Grüße".encode("utf-16"), "Grüße"),
        ("text/plain; charset=none-of-these", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=zlib", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=idna", b"a.b", "a.b"),
        ("text/plain; charset=\x00", b"a", "a"),
        ("text/plain; charset*=utf-8''latin-1", "ü".encode("latin-1"), "ü"),
        ("", b"\xff", "\ufffd"),
    ],
)
def test_reads_the_text_in_the_encoding_that_is_named(content_type: str, content: bytes, text: str) -> None:
    assert text_of_response(HttpResponse(200, "OK", {"content-type": content_type}, content)) == text


@pytest.mark.parametrize(
    ("status", "location"), [(200, None), (300, None), (301, "/new"), (304, None), (307, "/new"), (500, None)]
)
def test_only_a_redirect_leads_somewhere(status: int, location: str | None) -> None:
    assert HttpResponse(status, "", {"location": "/new"}, b"").location == location
