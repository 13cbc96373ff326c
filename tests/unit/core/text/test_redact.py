"""Secrets in texts: what programs usually write is masked, wherever it is cut."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from html import escape as to_html
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.redact import Redactor

SECRET = "sk-Ab3+/=:\"%41<&>\\nz9'Q q"

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 one byte in": lambda text: base64.b64encode(f"a{text}bc".encode()).decode(),
    "base64 two bytes in": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "address": lambda text: quote(text, safe=""),
    "path": quote,
    "form": quote_plus,
    "address in lower case": lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text, safe="")),
    "HTML": to_html,
    "HTML without quotes": lambda text: to_html(text, quote=False),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "Python": lambda text: repr(text)[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_masked(form: str) -> None:
    spelled = FORMS[form](SECRET)
    masked = Redactor([SECRET])(f"the key is {spelled}, she said")
    assert re.fullmatch(r"the key is .{0,7}\*\*\*.{0,6}, she said", masked)
    assert spelled[6:-6] not in masked


@given(st.text("abdefnuxÜ😀0189%&;#\\\"<>+/=' ", min_size=8, max_size=24), st.sampled_from(sorted(FORMS)))
def test_no_character_of_a_secret_hides_it(secret: str, form: str) -> None:
    bare = secret.strip()
    if len(bare) < 8:
        return
    masked = Redactor([secret])(f"it is {FORMS[form](bare)}, she said")
    assert "***" in masked
    assert len(masked) <= len("it is ***, she said") + 12


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_in_two_parts_of_a_stream_is_masked(form: str) -> None:
    redact = Redactor([SECRET])
    text = f"first line\n{FORMS[form](SECRET)}\nlast line\n"
    masked = redact(text)
    for cut in range(len(text)):
        complete = redact.complete(text[:cut])
        assert redact(text[:complete]) + redact(text[complete:]) == masked, cut


@given(st.integers(0, 120), st.sampled_from(["as it is", "base64", "address"]))
def test_the_rest_of_a_secret_is_recognised(cut: int, form: str) -> None:
    redact, secret = Redactor(["sk-abcdefgh0123456789"]), "sk-abcdefgh0123456789"
    spelled = FORMS[form](secret)
    text = f"{spelled} and more"[min(cut, len(spelled)) :]
    assert len(text) - redact.remains(text) <= len(" and more")


def test_short_secrets_are_masked_as_words() -> None:
    redact = Redactor(["ab1", "pin42", "xy"])
    assert redact("ab1, (pin42) pin421 cab1 xy") == "***, (***) pin421 cab1 xy"
    assert redact("_ab1_ my_pin42_is __pin42 pin42x") == "_***_ my_***_is __*** pin42x"
    assert Redactor(["", "ab", "    \n"])("ab, ab") == "ab, ab"


def test_each_line_of_a_key_file_is_a_secret() -> None:
    redact = Redactor(['pass"word\nline two is long'])
    assert redact('x pass"word\nline two is long y') == "x *** y"
    assert redact(json.dumps({"a": 'pass"word\nline two is long'})) == '{"a": "***"}'
    assert redact("only line two is long here") == "only *** here"


def test_the_longest_secret_wins() -> None:
    assert Redactor(["abcdef", "abcdefgh"])("abcdefgh abcdefg") == "*** ***g"


def test_characters_outside_of_ascii() -> None:
    redact = Redactor(["schl😀üssel"])
    assert redact(json.dumps("schl😀üssel") + quote("schl😀üssel")) == '"***"***'


def test_nested_data_is_masked() -> None:
    value = {"hunter22": [1, None, True, ("a hunter22", {"b": "hunter22"})]}
    assert Redactor(["hunter22"]).data(value) == {"***": [1, None, True, ["a ***", {"b": "***"}]]}


def test_secrets_are_not_shown() -> None:
    assert "hunter22" not in repr(Redactor(["hunter22"]))


@pytest.mark.parametrize(
    ("number", "masked"),
    [
        (12345678, "***"),
        (-12345678, "-***"),
        (9912345678, "99***"),
        (12345678.0, "***.0"),
        (0.12345678, "0.***"),
        (1234567.8, 1234567.8),
        (7, 7),
        (True, True),
    ],
)
def test_a_secret_in_a_number_is_masked(number: float, masked: object) -> None:
    assert Redactor(["12345678"]).data({"a": [number]}) == {"a": [masked]}
