"""Changes bytes the way that breaks parsers: tokens of another kind, splices, cuts, flips, nesting, length."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

#: What stands in for a token of any text format.
ODD_TOKENS: tuple[bytes, ...] = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"[[]]",
    b'{"": null}',
    b'""',
    b"''",
    b'"\\ud800"',
    b'"\\u0000"',
    b"-1",
    b"0",
    b"-0.0",
    b"1e999",
    b"1e-999",
    b"NaN",
    b".inf",
    b"9" * 400,
    b"9" * 5000,
    b"9223372036854775808",
    b"0x_",
    b"1:30",
    b"2026-02-30",
    b"1979-05-27T07:32:00Z",
    b"!!binary x",
    b"!!set {a}",
    b"? [a]",
    b"*a",
    b"&a [*a]",
    b"<<",
    b"~",
    b"${X}",
    b"${X:-}",
    b"/dev/null",
    b"..",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u202e\u2028\ufeff\U0001f468\u200d\U0001f469".encode(),
    "٣²½Ⅷ".encode(),
    b"<!-- agenteval:end key=x -->",
    b"{{ report }}",
    b"{% for x in report %}",
    b"(a+)+$",
    b"x" * 20_000,
)
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.){0,200}"|[\w.+-]+|[^\w\s]')
_NESTING = ((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b""), (b"a: ", b""), (b"{{", b"}}"), (b"(", b")"))
_LARGEST = 64 * 1024


def mutated(data: bytes, other: bytes, random: Random) -> bytes:
    """Change data one to six times, also with pieces of other data."""
    for _ in range(random.randint(1, 6)):
        data = random.choice(_CHANGES)(data, other, random)[:_LARGEST]
    return data


def _token(data: bytes, other: bytes, random: Random) -> bytes:
    return _replaced(data, random, random.choice(ODD_TOKENS))


def _foreign_token(data: bytes, other: bytes, random: Random) -> bytes:
    found = [match.group() for match in _TOKEN.finditer(other[:_LARGEST])]
    return _replaced(data, random, random.choice(found) if found else b"")


def _replaced(data: bytes, random: Random, token: bytes) -> bytes:
    found = [match.span() for match in _TOKEN.finditer(data)]
    if not found:
        return data + token
    start, end = random.choice(found)
    return data[:start] + token + data[end:]


def _line(data: bytes, other: bytes, random: Random) -> bytes:
    """Repeats a line, moves it, or leaves it out."""
    lines = data.split(b"\n")
    taken = lines[random.randrange(len(lines))]
    times = random.choice((0, 1, 1, 2, 50))
    at = random.randrange(len(lines) + 1)
    if random.random() < 0.5:
        lines.remove(taken)
    return b"\n".join([*lines[:at], *[taken] * times, *lines[at:]])


def _splice(data: bytes, other: bytes, random: Random) -> bytes:
    start, end = _piece(other, random)
    at, until = _piece(data, random)
    return data[:at] + other[start:end] + data[until:]


def _cut(data: bytes, other: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:start] if random.random() < 0.3 else data[:start] + data[end:]


def _flip(data: bytes, other: bytes, random: Random) -> bytes:
    if not data:
        return bytes([random.randrange(256)])
    at = random.randrange(len(data))
    return (
        data[:at]
        + bytes([random.choice((data[at] ^ 1 << random.randrange(8), random.randrange(256)))])
        + data[at + 1 :]
    )


def _nest(data: bytes, other: bytes, random: Random) -> bytes:
    begin, end = random.choice(_NESTING)
    depth = random.choice((3, 150, 1500, 12_000))
    at, until = _piece(data, random) if random.random() < 0.7 else (0, len(data))
    return data[:at] + begin * depth + data[at:until] + end * depth + data[until:]


def _repeat(data: bytes, other: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:end] + data[start : min(end, start + 200)] * random.choice((2, 30, 300)) + data[end:]


def _piece(data: bytes, random: Random) -> tuple[int, int]:
    first, second = random.randint(0, len(data)), random.randint(0, len(data))
    return min(first, second), max(first, second)


_Change = Callable[[bytes, bytes, Random], bytes]
# Another token is what passes a parser's first check most often.
_CHANGES: tuple[_Change, ...] = (
    *[_token] * 5,
    *[_foreign_token] * 3,
    _line,
    _line,
    _splice,
    _cut,
    _flip,
    _nest,
    _repeat,
)
