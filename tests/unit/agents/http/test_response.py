"""Bodies of responses: packed, in many encodings, too large."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents.http.response import MAX_BYTES, HttpError, HttpResponse, text_of, unpacked


def deflated(content: bytes, bits: int = zlib.MAX_WBITS) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(content) + packer.flush()


@given(st.binary())
def test_what_is_packed_is_unpacked(content: bytes) -> None:
    assert unpacked(gzip.compress(content), "gzip") == content
    assert unpacked(deflated(content), "deflate") == content
    assert unpacked(gzip.compress(deflated(content)), "deflate, GZIP") == content


@pytest.mark.parametrize("encodings", ["", "identity", "utf-8", "br"])
def test_other_encodings_are_left_alone(encodings: str) -> None:
    assert unpacked(b"as it is", encodings) == b"as it is"


def test_deflate_may_lack_its_header() -> None:
    assert unpacked(deflated(b"hello " * 100, -zlib.MAX_WBITS), "deflate") == b"hello " * 100


def test_nothing_needs_no_unpacking() -> None:
    assert unpacked(b"", "gzip") == b""


def test_a_stream_that_was_flushed_but_not_finished_holds_what_came() -> None:
    packer = zlib.compressobj(wbits=31)
    assert unpacked(packer.compress(b"hello") + packer.flush(zlib.Z_SYNC_FLUSH), "gzip") == b"hello"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_says_that_a_body_is_not_what_it_is_called(encoding: str) -> None:
    with pytest.raises(HttpError, match=f"sent what is not {encoding}") as caught:
        unpacked(b"\xffplain text", encoding)
    assert not caught.value.passing


@pytest.mark.parametrize("pack", [gzip.compress, deflated])
def test_a_body_that_unpacks_without_end_is_refused(pack: object) -> None:
    assert callable(pack)
    bomb = pack(bytes(MAX_BYTES + 1))
    assert len(bomb) < 100_000
    with pytest.raises(HttpError, match="answered more than 50 MiB"):
        unpacked(bomb, "gzip" if pack is gzip.compress else "deflate")


def test_the_largest_body_is_taken() -> None:
    assert len(unpacked(gzip.compress(bytes(MAX_BYTES), 1), "gzip")) == MAX_BYTES


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
    assert text_of(HttpResponse(200, "OK", {"content-type": content_type}, content)) == text


@pytest.mark.parametrize(
    ("status", "location"), [(200, None), (300, None), (301, "/new"), (304, None), (307, "/new"), (500, None)]
)
def test_only_a_redirect_leads_somewhere(status: int, location: str | None) -> None:
    assert HttpResponse(status, "", {"location": "/new"}, b"").location == location
