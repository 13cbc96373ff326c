"""Secrets in texts: every spelling is masked, wherever it is cut."""

from __future__ import annotations

import base64
import functools
import json
import re
import tracemalloc
import unicodedata
from collections.abc import Callable
from html import escape as to_html
from typing import Literal, get_args
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core import readings
from agenteval.core.escape import INVISIBLE, one_line, visible
from agenteval.core.readings import folded
from agenteval.core.redact import Redactor

SECRET = 'sk-Ab3+/=:"%41<&>\\nz9Qq'

SEPARATORS = (
    *("\x00", "\x1b[31m", "\x1b]0;title\x07", "\x1b[", "\x1bM", "\x9b0m", "\x08", "\x7f", "\x85", "\n", "\r\n", "\t"),
    *("\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u00ad", "\ufe0f", "\u034f", "\U000e0041"),
    *("\u0301", "\u2028", "\u3164", "  \n  ", "\ud800", "\ufffd", "\\n", "%0a", "&#8203;", "\\u200b", "&shy;"),
)

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 one byte in": lambda text: base64.b64encode(f"a{text}bc".encode()).decode(),
    "base64 two bytes in": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "percent": lambda text: quote(text, safe=""),
    "percent in lower case": lambda text: quote(text, safe="").lower(),
    "percent for every character": lambda text: "".join(f"%{ord(letter):02X}" for letter in text),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "hex": lambda text: text.encode().hex(),
    "hex in upper case": lambda text: text.encode().hex().upper(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex with spaces and prefix": lambda text: " ".join(f"0x{byte:02x}" for byte in text.encode()),
    "named entities": to_html,
    "decimal entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON codes": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "Python": lambda text: repr(text)[1:-1],
    "bytes": lambda text: "".join(f"\\x{ord(letter):02x}" for letter in text),
    "octal": lambda text: "".join(f"\\{ord(letter):03o}" for letter in text),
    "percent codes of scripts": lambda text: "".join(f"%u{ord(letter):04X}" for letter in text),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 inside": lambda text: base64.b32encode(f"key={text} ok".encode()).decode().rstrip("="),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 twice inside": lambda text: base64.b64encode(b"x" + base64.b64encode(f"a{text}b".encode())).decode(),
    "base64 of hex": lambda text: base64.b64encode(text.encode().hex().encode()).decode(),
    "hex of base64": lambda text: base64.b64encode(text.encode()).hex(),
    "hex of UTF-16": lambda text: text.encode("utf-16-le").hex(),
}


NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Encoded as bytes of UTF-8.
FORMS_OF_BYTES: dict[str, Callable[[str], str]] = {
    "percent for every character": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "bytes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "JSON codes": lambda text: re.sub("(.{4})", r"\\u\1", text.encode("utf-16-be").hex()),
}

# What HTML, JSON, addresses and Python make of a text; each can contain another.
NESTED = sorted(
    name for name in FORMS if not name.startswith(("base", "hex ")) and name != "hex" and "case" not in name
)

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


@functools.cache
def marks_and_spaces() -> list[str]:
    """All characters that mark another one, format, or are spaces; to find them takes a second."""
    return [
        chr(code)
        for code in range(0x80, 0x110000)
        if unicodedata.category(chr(code)) in {"Mn", "Me", "Cf", "Zs"} or unicodedata.combining(chr(code))
    ]


def remains(text: str, secret: str) -> bool:
    """Whether a text, read in any of the ways, still has more than half of a secret."""
    cleaned = {text, visible(text), one_line(text)}
    cleaned |= {"".join(item.split()) for item in cleaned}
    size = max(6, len(secret) // 2 + 1)
    return any(
        secret[at : at + size].lower() in item.lower() for item in cleaned for at in range(len(secret) - size + 1)
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_masked(form: str) -> None:
    spelled = FORMS[form](SECRET)
    masked = Redactor([SECRET])(f"the key is {spelled}, she said")
    assert "***" in masked
    assert masked.startswith("the key is ")
    assert masked.endswith(", she said")
    assert not remains(masked, spelled)


def test_separators_do_not_hide_it() -> None:
    redact = Redactor(["sk-abcdefgh0123456789"])
    spellings = {form: spell("sk-abcdefgh0123456789") for form, spell in FORMS.items()}
    shown = [
        (form, ascii(separator))
        for form, spelled in spellings.items()
        for separator in SEPARATORS
        if remains(redact(separator.join(halves(spelled))), spelled)
    ]
    assert shown == []


def halves(spelled: str) -> tuple[str, str]:
    """Cut a spelling in the middle, but not inside of an encoded character: that is another text then."""
    middle = len(spelled) // 2
    if any(sign in spelled for sign in "%&\\"):
        middle = max(spelled.rfind(sign, 0, middle) for sign in "%&\\")
    return spelled[:middle], spelled[middle:]


ENCODED = ("percent for every character", "decimal entities", "hexadecimal entities", "JSON codes", "bytes", "octal")


@pytest.mark.parametrize("form", ENCODED)
@pytest.mark.parametrize("separator", ["\x00", "\x1b[31m", "\u200b", "\u00ad"], ids=ascii)
def test_a_character_that_reports_remove_does_not_hide_a_code(separator: str, form: str) -> None:
    secret = "sk-abcdefgh0123456789"
    code = len(FORMS[form](secret)) // len(secret)
    for place in range(code):
        spelled = separator.join(f"{part[:place]}{separator}{part[place:]}" for part in map(FORMS[form], secret))
        assert Redactor([secret])(spelled).count("***") == 1
        assert not remains(Redactor([secret])(spelled), FORMS[form](secret))


@pytest.mark.parametrize("form", FORMS_OF_BYTES)
def test_encoded_separators_do_not_hide_it(form: str) -> None:
    redact = Redactor([SECRET])
    for separator in SEPARATORS[:30]:
        between = FORMS_OF_BYTES[form](separator.replace("\ud800", "\ufdd0"))
        masked = redact(f"it is {SECRET[:9]}{between}{SECRET[9:]}, she said")
        assert masked == "it is ***, she said", ascii(separator)


@given(
    st.text('abdefnux0189%&;#\\"<>+/=', min_size=8, max_size=24),
    st.lists(st.sampled_from(NESTED), min_size=1, max_size=2),
)
def test_no_code_in_a_secret_hides_it(secret: str, forms: list[str]) -> None:
    spelled, room = secret, "\\"
    for form in forms:
        spelled, room = FORMS[form](spelled), FORMS[form](room)
    masked = Redactor([secret])(f"it is {spelled}, she said")
    assert "***" in masked
    assert len(masked) <= len("it is ***, she said") + len(room)


@given(
    st.text("abkzßüéñïﬁ09ẞΣςИй한Ⅳ", min_size=6, max_size=9),
    st.text("abkzßüéñïﬁ09ẞΣςИй한Ⅳ\u0301\u0e31ａ９ \u1112", max_size=20),
    st.sampled_from(get_args(NormalForm)),
)
def test_no_fold_is_left_out_that_shows_a_secret(secret: str, around: str, form: NormalForm) -> None:
    redact, text = Redactor([secret]), f"{around}{unicodedata.normalize(form, wide(secret))}{around}"
    with pytest.MonkeyPatch.context() as always:
        always.setattr(readings, "folds_into", lambda *_: True)
        expected = redact(text)
    assert redact(text) == expected


@given(
    st.text("abcDEF0189-_+/ü€😀", min_size=6, max_size=30).filter(lambda text: text.strip() == text),
    st.lists(st.sampled_from(SEPARATORS[:30]), max_size=60),
    st.text(max_size=20),
)
def test_no_secret_remains_after_cleaning(secret: str, separators: list[str], around: str) -> None:
    spelled = "".join(
        letter + (separators[place] if place < len(separators) else "") for place, letter in enumerate(secret)
    )
    bare = "".join(visible(secret).split())
    if len(bare) < 6 or "\x1b[" in spelled or "\x1bM" in spelled or "*" in around:
        return
    masked = Redactor([secret])(f"{around} {spelled} {around}")
    assert bare.lower() not in "".join(visible(masked).split()).lower()


@given(st.lists(st.text(min_size=1)), st.text())
def test_no_secret_survives(secrets: list[str], text: str) -> None:
    clean = Redactor(secrets)("".join(f"{secret} {text}" for secret in secrets))
    long = [secret for secret in secrets if len("".join(INVISIBLE.sub("", visible(secret)).split())) >= 6]
    assert not [secret for secret in long if "*" not in secret and secret in clean]


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_secret_in_two_parts_of_a_stream_is_masked(form: str) -> None:
    redact = Redactor([SECRET])
    text = f"first line\n{FORMS[form](SECRET)}\nlast line\n"
    masked = redact(text)
    # No code of a character has a length that seven divides, so each place in a code is cut.
    for cut in range(0, len(text), 7):
        complete = redact.complete(text[:cut])
        assert redact(text[:complete]) + redact(text[complete:]) == masked, cut


@given(st.integers(0, 120), st.sampled_from(["as it is", "base64", "hex", "JSON codes", "decimal entities"]))
def test_the_rest_of_a_secret_is_recognised(cut: int, form: str) -> None:
    redact, secret = Redactor(["sk-abcdefgh0123456789"]), "sk-abcdefgh0123456789"
    spelled = FORMS[form](secret)
    text = f"{spelled} and more"[min(cut, len(spelled)) :]
    assert len(text) - redact.remains(text) <= len(" and more")


def test_short_secrets_are_masked_as_words() -> None:
    redact = Redactor(["ab1", "pin42", "xy"])
    assert redact("ab1, (PIN42) pin421 cab1 xy") == "***, (***) pin421 cab1 xy"
    assert redact("_ab1_ my_pin42_is __PIN42 ｐｉｎ42 pin42x") == "_***_ my_***_is __*** *** pin42x"
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


@pytest.mark.parametrize("filler", ["%41", "\\", "ab "])
# Traces each allocation of memory.
@pytest.mark.slow
def test_the_memory_for_a_large_text_is_a_few_copies_of_it(filler: str) -> None:
    redact, text = Redactor(["hunter22hunter"]), "hunter22hunter " + filler * 200_000
    tracemalloc.start()
    try:
        assert redact(text).startswith("*** ")
        assert tracemalloc.get_traced_memory()[1] < 12 * len(text)
    finally:
        tracemalloc.stop()


def test_secrets_are_not_shown() -> None:
    assert "hunter22" not in repr(Redactor(["hunter22"]))


def wide(text: str) -> str:
    return text.translate(WIDE)


@given(
    st.text("abkzßüéñïﬁ09ẞΣςИй한Ⅳ", min_size=8, max_size=20),
    st.sampled_from(get_args(NormalForm)),
    st.sampled_from(get_args(NormalForm)),
    st.sampled_from([str, str.upper, str.lower, str.title, wide]),
    st.sampled_from(sorted(FORMS)),
)
def test_every_unicode_form_of_a_secret_is_masked(
    secret: str, known: NormalForm, shown: NormalForm, spell: Callable[[str], str], form: str
) -> None:
    redact = Redactor([unicodedata.normalize(known, secret)])
    # The bytes of an encoded text do not show which other characters look like it.
    plain = form == "as it is"
    canonical: NormalForm = "NFC" if shown in {"NFC", "NFKC"} else "NFD"
    text = unicodedata.normalize(shown if plain else canonical, spell(secret) if plain else secret)
    redact = redact if plain else Redactor([secret])
    spelled = FORMS_OF_BYTES.get(form, FORMS[form])
    masked = redact(f"it is {spelled(text)}, she said")
    assert "***" in masked
    # The accent of the last letter may remain, and what the form itself has.
    assert len(masked) <= len("it is ***, she said") + len(spelled("\u0308"))


@given(
    st.deferred(lambda: st.sampled_from(marks_and_spaces())),
    st.integers(1, 11),
    st.sampled_from(["hunter22hunter", "schlüssel42x"]),
)
def test_marks_and_spaces_do_not_hide_a_secret(separator: str, place: int, secret: str) -> None:
    masked = Redactor([secret])(f"it is {secret[:place]}{separator}{secret[place:]}, she said")
    assert masked.startswith("it is ***")
    assert masked.endswith((", she said", f"{separator}, she said"))


def test_a_long_text_outside_of_ascii_is_masked_at_the_right_place() -> None:
    before = "日本e\u0301ﬁﷺ한글" * 5000
    assert Redactor(["hunter22hunter"])(f"{before}ｈｕｎｔｅｒ22ｈｕｎｔｅｒ{before}") == f"{before}***{before}"


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


@pytest.mark.parametrize(
    "text", ["12,345,678", "12.345.678", "12 345 678", "12_345_678", "12'345'678", "1.2345678e7"]
)
@pytest.mark.parametrize("secret", ["12345678", "0012345678"])
def test_a_secret_number_is_masked_as_programs_write_it(text: str, secret: str) -> None:
    assert Redactor([secret])(f"it is {text}, she said") in {"it is ***, she said", "it is ***7, she said"}


def test_all_format_and_control_characters_are_separators() -> None:
    seen = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"}]
    assert [ascii(letter) for letter in seen if not (INVISIBLE.fullmatch(letter) or letter.isspace())] == []


def test_all_marks_are_folded_away() -> None:
    assert [ascii(mark) for mark in marks_and_spaces() if folded(INVISIBLE.sub("", mark)).strip()] == []


# Tries each character of Unicode.
@pytest.mark.slow
def test_each_character_is_folded_alone() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert folded(everything) == "".join(map(folded, everything))
