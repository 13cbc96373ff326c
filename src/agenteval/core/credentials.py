"""Finds the credentials inside a value: addresses, connection strings, headers and JSON objects.

A value can contain several credentials, and tools quote and encode them differently. Each credential is returned in
every reading that a program may use; a wrong reading does no harm, because it occurs in no text.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

# Credentials that have a published form, so that they are recognised in any text.
#
# Issuers give their credentials fixed prefixes and lengths for this purpose. A longer credential has the form too.


# For forms of letters, digits and hyphens, which names in words could have too.
_WITH_DIGIT = r"(?=[A-Za-z_-]{0,40}[0-9])"
_RANDOM = _WITH_DIGIT + r"(?=[a-z0-9_-]{0,40}[A-Z])"

_WORD = r"[A-Za-z0-9_-]"

# Each form in three parts, around a character that is rare in texts: searching this character is several times as
# fast as searching the characters before it, which have a fixed length.
_FORMS = (
    # GitHub; tokens of apps can be JSON Web Tokens after the prefix.
    ("gh[opru]", "_", r"[A-Za-z0-9]{36,}"),
    ("ghs", "_", r"[A-Za-z0-9._-]{36,}"),
    ("github", "_", r"pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59,}"),
    # GitLab
    ("glpat", "-", rf"{_WITH_DIGIT}{_WORD}{{20,}}(?:\.[a-z0-9]{{2,}}){{0,2}}"),
    # OpenAI, Anthropic, and the many that use their form
    ("sk", "-", r"[A-Za-z0-9]{32,}"),
    ("sk", "-", rf"(?:ant|proj|svcacct|admin)-{_RANDOM}{_WORD}{{40,}}"),
    ("sk", "-", r"or-v1-[a-f0-9]{64,}"),
    # Groq, xAI, Hugging Face, Replicate
    ("gsk", "_", r"[A-Za-z0-9]{52,}"),
    ("xai", "-", r"[A-Za-z0-9]{80,}"),
    ("hf", "_", r"[A-Za-z0-9]{34,}"),
    ("r8", "_", r"[A-Za-z0-9]{37,}"),
    # npm, PyPI
    ("npm", "_", r"[A-Za-z0-9]{36,}"),
    ("pypi", "-", rf"AgE{_WORD}{{60,}}"),
    # Stripe
    ("[sr]k", "_", r"live_[A-Za-z0-9]{16,}"),
    # Slack
    ("xox[abeoprs]", "-", rf"{_WITH_DIGIT}[A-Za-z0-9-]{{16,}}"),
    ("xapp", "-", r"[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[A-Za-z0-9]{16,}"),
    ("https://hooks", ".", r"slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_-]{6,}/[A-Za-z0-9/_-]{16,}"),
    # Amazon, Google
    ("A[KS]I", "A", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("A", "I", rf"za{_WORD}{{35}}"),
    ("GOCSPX", "-", rf"{_WORD}{{28}}"),
    # JSON Web Tokens; an encrypted one has five parts.
    ("(?<![_-])ey", "J", rf"{_WORD}{{8,}}\.{_WORD}{{8,}}\.{_WORD}{{16,}}(?:\.{_WORD}+\.{_WORD}+)?"),
    # Private keys, whole or without their ends
    (
        "-----BEGI",
        "N",
        r" [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----\s{0,9}(?:[\w-]{1,30}: .{0,200}\s{1,4}){0,5}"
        r"[A-Za-z0-9+/=]{16,}[A-Za-z0-9+/=\s]*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
)

_STARTS = re.compile(
    "|".join(dict.fromkeys(rf"{re.escape(sign)}(?<={before}{re.escape(sign)})" for before, sign, _ in _FORMS))
)
_FORM = re.compile(
    "|".join(
        rf"{re.escape(sign)}(?<=(?<![A-Za-z0-9])({before}){re.escape(sign)})(?:{rest})"
        for before, sign, rest in _FORMS
    )
)
# A start and the first character after it.
_LONGEST_START = 16

# An access key of Amazon has two parts, and only the first one has a form.
_AMAZON_ID = re.compile("A[KS]IA[A-Z0-9]{16}")
_AMAZON_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])(?![0-9a-f]+\b)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_NEXT_TO = 200

_KEY_START = "-----BEGIN"
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")

_CHARACTERS = f"{string.ascii_letters}{string.digits}_-./+=:"
# JSON Web Tokens have no limit; no longer ones are usual.
_LONGEST_FORM = 4096


def may_show_credential(text: str) -> bool:
    """Return whether a text contains the start of a form, which is a quick check."""
    return _STARTS.search(text) is not None


def credentials_at(text: str) -> list[tuple[int, int]]:
    """Return where the credentials of a text begin and end, in order; none overlap."""
    found: list[tuple[int, int]] = []
    for match in _FORM.finditer(text):
        begin, end = match.start(match.lastindex or 0), match.end()
        found.append((begin, end))
        if _AMAZON_ID.match(text, begin):
            around = _AMAZON_SECRET.finditer(text, max(0, begin - _NEXT_TO), end + _NEXT_TO)
            found += [secret.span() for secret in around]
    return sorted(set(found))


def unfinished_at(text: str) -> int:
    """Return where a credential may begin that continues after the text; the length of the text if none does."""
    word = len(text.rstrip(_CHARACTERS))
    begin = word if _STARTS.search(text, word) else max(word, len(text) - _LONGEST_START)
    key = text.rfind(_KEY_START)
    if key >= 0 and not _KEY_END.search(text, key):
        begin = min(begin, key)
    amazon = _AMAZON_ID.search(text, max(0, len(text) - _NEXT_TO - _LONGEST_START))
    return min(begin, amazon.start()) if amazon else begin


def rest_of_unfinished(text: str) -> int:
    """Return how much of the beginning of a text may be the end of a credential that begins before it."""
    word = len(text) - len(text.lstrip(_CHARACTERS))
    key = _KEY_END.search(text)
    if key and _KEY_START not in text[: key.start()]:
        return key.end()
    return min(word, _LONGEST_FORM)


# Values that reports would contain anyway.
_COMMON = re.compile(
    r"true|false|none|null|enabled?|disabled?|default|undefined|unset|yes|off|on|auto|required"
    r"|admin|administrator|anonymous|client|guest|public|root|server|user|username|main|case|error|score|passed"
    r"|basic|bearer|changeme|dummy|example|password|secret|token|localhost|debug|demo|development|prod|production"
    r"|staging|test|testing|console|master|mysql|postgres|postgresql|ubuntu|wayland",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[\d.,_]{0,7}")
_LONG_NUMBER = re.compile(r"\d{6,}")
_SHORTEST = 3

# No variable with a credential is longer.
_LONGEST_VALUE = 100_000

# Of a connection string.
_LONGEST_PASSWORD = 1024

# The nesting of encodings, such as an address in a JSON object in base64.
_DEPTH = 4

# Keys whose values are credentials.
_KEY = re.compile(
    r"(?:.*_)?(?:[A-Z]*(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE|APIKEY)|PWD|PASS|SECRET|TOKEN|JWT|AUTHTOKEN|CREDENTIALS?"
    r"|SIG|SIGNATURE|(?:API|ACCESS|ACCOUNT|SECRET|PRIVATE|SHARED|ENCRYPTION|SIGNING|MASTER)_?KEY)"
)
_HEADER_NAME = re.compile(rf"(?:.*_)?AUTH(?:ORIZATION)?|.*_KEY|{_KEY.pattern}")

# Schemes, keys and names are short, so that the time to search stays linear.
_ADDRESS_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_ADDRESS = re.compile(r"[^\s\"<>]*")
_HOST = re.compile(r"[^/?#]*")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
# The names of users are not tokens there.
_OF_USERS = re.compile(r"(?:.*\+)?(?:ssh|s?ftps?|smtps?|imaps?|ldaps?|sips?|rsync|svn)", re.IGNORECASE)

# `user:password@tcp(host)`, and `user:password@host:port` without a scheme.
_WITHOUT_SCHEME = re.compile(
    r"(?<![^\s\"'=,])(?!mailto:)[^\s\"'=:/@]*:(?!//)(?P<password>[^\s\"']+)@"
    r"(?:(?:tcp|udp|unix)\(|[\w.-]+:\d{2,5}(?!\d))"
)
_ORACLE = re.compile(r"jdbc:oracle:\w+:[^\s/@:]+/(?P<password>\S+)@", re.IGNORECASE)

# `Password=…;`, `password='…' host=…`, `?password=…&`, `--token …`. A key starts at the start of a word.
_PAIR = re.compile(
    r"""
      (?<![\w.]) (?<![\w.]-)
      (?: (?P<key> [A-Za-z_] [\w.-]{0,60} (?: [ ] [A-Za-z]{1,20} )? ) [ \t]{0,9} = [ \t]{0,9}
        | -- (?P<option> [A-Za-z] [\w-]{0,60} ) [ \t]{1,9} (?! [\s=-] ) )
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.|'')*)'|\"((?:[^\"\\]|\\.|\"\")*)\"", re.DOTALL)
_ENDS = (re.compile(r"[;\n]|\Z"), re.compile(r"[;&\s]|\Z"), re.compile(r"[;,&\s]|\Z"))
_NEXT_PAIR = re.compile(r"[\s;,&]{0,9}(?:[A-Za-z_][\w. -]{0,60}=|\Z)")
# A shorter part of a value that is not followed by a key may be a common word.
_SHORTEST_PART = 6
# A variable of a shell or template, not the value itself.
_VARIABLE = re.compile(r"\$|%\(|\{\{|<")

_HEADER = re.compile(r"^[ \t]*(?P<name>[A-Za-z][\w-]*)[ \t]*:[ \t]*(?P<value>\S[^\r\n]*)", re.MULTILINE)
_COOKIE_NAME = re.compile(r"(?:SET_)?COOKIE2?")
_COOKIE = re.compile(r"(?<![^\s;,])[^\s=;,]+=(?P<value>[^\s;]{6,})")
_AUTH_SCHEME = re.compile(r"(?:basic|bearer|digest|negotiate|token|api[-_]?key|ssws)[ \t]+(\S+)", re.IGNORECASE)
# A whole value that begins as a token does; its length may be unusual.
_PREFIXED = re.compile(
    r"(?:gh[oprsu]_|github_pat_|glpat-|sk-|[sr]k_live_|hf_|npm_|gsk_|xai-|xox[abeoprs]-|xapp-|pypi-)"
    r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
)
_STANDARD = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")

# A text in a secret JSON object with so many characters is no common word.
_LONG_TEXT = 20


def is_maskable(value: str) -> bool:
    """Return whether a value is long and rare enough to be masked."""
    text = value.strip()
    return len(text) >= _SHORTEST and _COMMON.fullmatch(text) is None and _NUMBER.fullmatch(text) is None


def is_long_number(value: str) -> bool:
    """Return whether a value is a number that is long enough for a password."""
    return _LONG_NUMBER.fullmatch(value.strip()) is not None


def in_words(name: str) -> str:
    """Return a name in upper case, its words apart: openAiKey, http.extraheader and x-api-key have two or three."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).strip("_").upper()


def credentials_in(value: str) -> set[str]:
    """Return the credentials in a value, and what contains them: the address, the header and the value.

    Returns:
        Nothing for a text without a credential.
    """
    if len(value) > _LONGEST_VALUE:
        return set()
    found = set(filter(None, _found(value.strip(), _DEPTH)))
    return found | {value} if found else found


def parts_of_secret(value: str) -> set[str]:
    """Return the parts of a secret that are secret as well.

    These are the credentials in it; the last word of a header's value, such as a token after ``Bearer``; and, of a
    JSON object such as a service account, the values of keys like ``private_key`` and all long texts besides plain
    addresses.
    """
    if len(value) > _LONGEST_VALUE:
        return set()
    found = credentials_in(value) | set(_authorization(value.strip()))
    for key, text in _leaves(value.strip(), _DEPTH):
        if _KEY.fullmatch(in_words(key)) or (len(text) >= _LONG_TEXT and not _ADDRESS_START.match(text)):
            found.add(text)
    return {part for part in found if is_maskable(part) or is_long_number(part)}


def _found(value: str, depth: int) -> Iterator[str]:
    yield from (value[begin:end] for begin, end in credentials_at(value))
    if _PREFIXED.fullmatch(value):
        yield value
    for text in _addresses(value):
        yield from _addressed(text)
    for match in (*_WITHOUT_SCHEME.finditer(value), *_ORACLE.finditer(value)):
        yield from _decoded(match["password"])
    yield from _pairs(value)
    yield from _headers(value)
    for key, text in _leaves(value, depth):
        words = in_words(key)
        if _KEY.fullmatch(words) and is_credential(text):
            yield text
        if words == "AUTH":
            yield from _user_and_password(text)
        if depth:
            yield from _found(text, depth - 1)


def is_credential(text: str) -> bool:
    """Return whether the value of a key such as ``password`` is a credential."""
    return (is_maskable(text) or is_long_number(text)) and _VARIABLE.match(text) is None


def _addresses(value: str) -> Iterator[str]:
    """Yield the addresses in a value; one may directly follow another."""
    starts = [match.start() for match in _ADDRESS_START.finditer(value)]
    for begin, end in pairwise([*starts, len(value)]):
        address = _ADDRESS.match(value, begin, end)
        if address:
            yield address[0].rstrip("',;)")


def _addressed(address: str) -> Iterator[str]:
    scheme, _, rest = address.partition("://")
    host = _HOST.match(rest)
    authority = host[0] if host else ""
    users = {part.rpartition("@")[0] for part in (authority, *authority.split(",")) if "@" in part}
    # The password may contain raw slashes and signs.
    everything = rest.rpartition("@")[0]
    user, colon, password = everything.partition(":")
    if colon and _HOST.fullmatch(user) and ("@" in authority or not _PORT.match(password)):
        users.add(everything)
    for each in users:
        user, _, password = each.partition(":")
        if password:
            yield from (address, *_decoded(password))
        if _is_token(user) and not _OF_USERS.fullmatch(scheme):
            yield from (address, *_decoded(user))


def _is_token(user: str) -> bool:
    return len(user) >= 20 or (len(user) >= 12 and any(map(str.isdigit, user)) and any(map(str.isalpha, user)))


def _decoded(password: str) -> tuple[str, ...]:
    return (password, unquote(password))


def _pairs(value: str) -> Iterator[str]:
    """Yield the values of keys and options that contain credentials."""
    for match in _PAIR.finditer(value):
        if _KEY.fullmatch(in_words(match["key"] or match["option"])):
            yield from filter(is_credential, _values_at(value, match.end()))


def _values_at(value: str, begin: int) -> Iterator[str]:
    """Yield the readings of the value that begins at a place: quoted, or up to each kind of separator."""
    quoted = _QUOTED.match(value, begin)
    if quoted:
        text = quoted[1] if quoted[1] is not None else quoted[2]
        quote = quoted[0][0]
        yield from {text, re.sub(r"\\(.)", r"\1", text.replace(quote * 2, quote)), text.replace(quote * 2, quote)}
        return
    for separator in _ENDS:
        end = separator.search(value, begin, begin + _LONGEST_PASSWORD)
        text = value[begin : end.start()].strip() if end else ""
        if end and (len(text) >= _SHORTEST_PART or _NEXT_PAIR.match(value, end.start())):
            yield from _decoded(text)


def _headers(value: str) -> Iterator[str]:
    """Yield the headers with credentials, and their credentials; other texts also contain colons."""
    for header in _HEADER.finditer(value):
        name, text = in_words(header["name"]), header["value"].strip().strip("'\"")
        credentials: list[str] = []
        if _COOKIE_NAME.fullmatch(name):
            credentials = [match["value"] for match in _COOKIE.finditer(text)]
        elif _HEADER_NAME.fullmatch(name):
            credentials = [text] if _is_random(text) else _unlikely_words(text)
        if credentials:
            yield from (header[0].strip(), text, *credentials)


def _unlikely_words(text: str) -> list[str]:
    """Return the credential after an authentication scheme; ``Basic knowledge`` has none."""
    found = list(_authorization(text))
    return found if len(found) > 1 or any(map(_is_random, found)) else []


def _authorization(text: str) -> Iterator[str]:
    """Yield the credential after the name of an authentication scheme."""
    match = _AUTH_SCHEME.fullmatch(text)
    if match is not None:
        yield match[1]
        yield from _user_and_password(match[1])


def _user_and_password(text: str) -> Iterator[str]:
    decoded = _from_base64(text)
    if ":" in decoded:
        yield from (text, decoded, decoded.partition(":")[2])


def _is_random(text: str) -> bool:
    """Return whether a text is one long word that is probably not a word of a language."""
    if any(map(str.isspace, text)) or _VARIABLE.match(text):
        return False
    return len(text) >= 16 or (len(text) >= 8 and any(map(str.isdigit, text)))


def _leaves(value: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers of a JSON object or list, also in base64, each with the nearest key."""
    text = value if value[:1] in {"{", "["} else _from_base64(value) if depth else ""
    if text[:1] not in {"{", "["}:
        return
    try:
        rest: list[tuple[str, Any]] = [("", json.loads(text, parse_float=str, parse_int=str))]
    except (ValueError, RecursionError):
        return
    while rest:
        key, item = rest.pop()
        if isinstance(item, dict):
            rest += item.items()
        elif isinstance(item, list):
            rest += [(key, each) for each in item]
        elif isinstance(item, str):
            yield key, item


def _from_base64(text: str) -> str:
    """Return the text that base64 encodes; empty if it encodes none."""
    joined = "".join(text.split())
    if _BASE64.fullmatch(joined) is None:
        return ""
    try:
        data = base64.b64decode(joined.translate(_STANDARD).rstrip("=") + "=" * (-len(joined.rstrip("=")) % 4))
        return data.decode("utf-8")
    except ValueError:
        return ""
