"""Responses: text in many encodings, redirects."""

from __future__ import annotations

import pytest

from agenteval.agents.http_response import HttpResponse, text_of_response


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
