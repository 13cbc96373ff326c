"""Secrets in texts, whatever their form and wherever they are cut."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable
from html import escape as to_html
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.redact import MASK, Redactor

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


ROOT = Path(__file__).parents[4]

# Made of parts, so that no scanner takes this file for a leak.
LETTERS = "aZ3kQ9xR7mB2vN8pL5tY1wC6dF4gH0jSuEiO" * 8


def part(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(letter for letter in LETTERS if letter in alphabet)[:length]


def jwt_part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{jwt_part({'alg': 'RS256', 'typ': 'JWT'})}.{jwt_part({'sub': '1234567890', 'iat': 1})}.{part(86)}"
PRIVATE = "MII" + "\n".join(part(64) for _ in range(4))


def key_file(kind: str, headers: str = "") -> str:
    return f"-----BEGIN {kind}-----\n{headers}{PRIVATE}==\n-----END {kind}-----"


CREDENTIALS = {
    "GitHub, classic": "ghp_" + part(36),
    "GitHub, OAuth": "gho_" + part(36),
    "GitHub, user of an app": "ghu_" + part(36),
    "GitHub, app": "ghs_" + part(36),
    "GitHub, app, stateless": f"ghs_12345_{JWT}",
    "GitHub, refresh": "ghr_" + part(76),
    "GitHub, fine-grained": f"github_pat_{part(22)}_{part(59)}",
    "GitLab": "glpat-" + part(20),
    "GitLab, routable": f"glpat-{part(27)}.01.{part(9, string.ascii_lowercase + string.digits)}",
    "OpenAI, old": f"sk-{part(20)}T3BlbkFJ{part(20)}",
    "OpenAI, project": f"sk-proj-{part(40)}_-{part(60)}T3BlbkFJ{part(70)}",
    "OpenAI, service account": f"sk-svcacct-{part(58)}T3BlbkFJ{part(58)}",
    "Anthropic": f"sk-ant-api03-{part(60)}-_{part(31)}AA",
    "OpenRouter": "sk-or-v1-" + part(64, "abcdef0123456789") + "0" * 40,
    "DeepSeek": "sk-" + part(32, "abcdef0123456789") + "0" * 10,
    "Langfuse": "sk-lf-01234567-89ab-cdef-0123-456789abcdef",
    "Langfuse, public": "pk-lf-01234567-89ab-cdef-0123-456789abcdef",
    "Groq": "gsk_" + part(52),
    "xAI": "xai-" + part(80),
    "Hugging Face": "hf_" + part(34, string.ascii_letters),
    "Replicate": "r8_" + part(37),
    "npm": "npm_" + part(36),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + part(120),
    "Stripe": "sk_live_" + part(24),
    "Stripe, restricted": "rk_live_" + part(99),
    "Slack, bot": f"xoxb-{'1234567890123'}-{'2345678901234'}-{part(24)}",
    "Slack, user": f"xoxp-{'1234567890'}-{'2345678901'}-{'3456789012'}-{part(32)}",
    "Slack, app": f"xapp-1-A0123456789-{'1234567890123'}-{part(64)}",
    "Slack, webhook": f"https://hooks.slack.com/services/T0123ABCD/B0123ABCD/{part(24)}",
    "Amazon": "AKIA" + part(16, string.ascii_uppercase + string.digits),
    "Amazon, temporary": "ASIA" + part(16, string.ascii_uppercase + string.digits),
    "Google": "AIza" + part(35),
    "Google, OAuth": "GOCSPX-" + part(28),
    "JSON Web Token": JWT,
    "private key": key_file("PRIVATE KEY"),
    "RSA key": key_file("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"),
    "SSH key": key_file("OPENSSH PRIVATE KEY"),
    "PGP key": key_file("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\nComment: https://gnupg.org\n\n"),
}

# What reports contain: none of it is a credential.
WORDS = """
sk ghp gho hf npm xox glpat AKIA eyJ AIza pypi github pat live task-force the order is 42 café x-ray to_do
abcdef0123456789abcdef0123456789abcdef01 2026-11-23T10:45:00Z 550e8400-e29b-41d4-a716-446655440000
sk-learn-based-evaluation-of-models-with-many-words-in-it risk-adjusted-return -----BEGIN PRIVATE KEY-----
https://hooks.slack.com/services sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""
ORDINARY = st.lists(
    st.tuples(st.sampled_from(WORDS.split()), st.sampled_from([" ", "\n", ": ", ", ", "/", "'"])), max_size=20
).map(lambda items: "".join(word + sign for word, sign in items))


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "it is {}, she said",
        "TOKEN={}\n",
        '{{"text": "{}"}}',
        "https://me:{}@host",
        "({}).",
        "x/{}",
        "'{}'",
        "\x1b[31m{}\x1b[0m",
    ],
)
def test_each_form_is_masked(around: str) -> None:
    redact = Redactor([])
    masked = {name: redact(around.format(credential)) for name, credential in CREDENTIALS.items()}
    assert masked == dict.fromkeys(CREDENTIALS, around.format(MASK))


def test_the_secret_key_next_to_an_id_of_amazon_is_masked() -> None:
    identity, secret = CREDENTIALS["Amazon"], part(38) + "/+"
    commit = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
    for text in (f"{identity}:{secret}", f"{identity}\n  {secret}", json.dumps({"Secret": secret, "Id": identity})):
        assert secret not in Redactor([])(text)
    assert Redactor([])(f"{identity} {commit}") == f"{MASK} {commit}"
    assert Redactor([])(f"{secret} alone") == f"{secret} alone"


@given(ORDINARY)
def test_ordinary_texts_have_none(text: str) -> None:
    assert Redactor([])(text) == text


# Reads the whole source code.
@pytest.mark.slow
def test_no_documentation_or_source_has_one() -> None:
    files = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "examples").rglob("*"),
    ]
    assert len(files) > 300
    texts = {path: path.read_text("utf-8", "replace") for path in files if path.is_file()}
    redact = Redactor([])
    assert [path for path, text in texts.items() if redact.finds(text)] == []


@given(st.sampled_from(sorted(CREDENTIALS)), st.lists(st.integers(0, 1000), max_size=4))
def test_no_part_is_shown_of_a_stream(name: str, cuts: list[int]) -> None:
    redact, text = Redactor([]), f"first line\ntoken={CREDENTIALS[name]}\nlast line\n"
    shown, waiting, at = "", "", 0
    for cut in (*sorted(min(cut, len(text)) for cut in cuts), len(text)):
        waiting += text[at:cut]
        at = cut
        complete = redact.complete(waiting)
        shown, waiting = shown + redact(waiting[:complete]), waiting[complete:]
    assert shown + redact(waiting) == f"first line\ntoken={MASK}\nlast line\n"


@given(st.sampled_from(sorted(CREDENTIALS)), st.integers(1, 400))
def test_no_end_of_one_is_left(name: str, cut: int) -> None:
    redact, credential = Redactor([]), CREDENTIALS[name]
    text = f"{credential[min(cut, len(credential)) :]} and then much more"
    rest = text[redact.remains(text) :]
    assert redact(rest).endswith("more")
    assert [word for word in re.findall(r"[A-Za-z0-9]{16,}", redact(rest)) if word in credential] == []


# Reads long texts.
@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("ghp_", "sk-proj-", "glpat-", "xoxb-", "eyJ", "eyJ-", "eyJabcdefgh.", "-----BEGIN PRIVATE KEY-----"),
        *("-----BEGIN PRIVATE KEY-----\nA: b\n", "AKIA0123456789ABCDEF", "https://hooks.slack.com/services/", "a: "),
    ],
)
def test_the_time_is_linear(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert len(Redactor([])(text)) <= len(text)
