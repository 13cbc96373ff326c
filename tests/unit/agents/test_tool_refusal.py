"""Which exceptions of a tool are its refusals."""

from __future__ import annotations

import json
import urllib.error

import pytest

from agenteval.agents.tool import is_refusal_exception
from agenteval.agents.worker.calls import _raised
from agenteval.core.refusal import is_breakdown


class QueryBlocked(Exception):  # noqa: N818 - as users name them
    """A refusal by its name."""


class TooLongError(ValueError):
    """A refusal by its base class."""


class APIConnectionError(Exception):
    """An exception of a client's library that is no OSError."""


def caused(error: Exception, cause: BaseException, *, explicit: bool = True) -> Exception:
    if explicit:
        error.__cause__ = cause
    else:
        error.__context__ = cause
    return error


def undecodable() -> Exception:
    try:
        json.loads("{")
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [
        PermissionError("read only"),
        ValueError("no such city"),
        TooLongError("999"),
        QueryBlocked(""),
        Exception("Request blocked"),
        RuntimeError("I can't do that."),
        AssertionError("This query is not allowed"),
        caused(PermissionError("unknown user"), KeyError("user")),
        caused(ValueError("no such report"), FileNotFoundError("report"), explicit=False),
    ],
    ids=repr,
)
def test_a_refusal(error: BaseException) -> None:
    assert is_refusal(error)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'shop'"),
        NameError("name 'x' is not defined"),
        TypeError("unsupported operand"),
        KeyError("user"),
        NotImplementedError(),
        ConnectionRefusedError(111, "Connection refused"),
        TimeoutError("request denied"),
        FileNotFoundError("shop.db"),
        urllib.error.URLError("refused"),
        APIConnectionError("Connection error."),
        undecodable(),
        UnicodeDecodeError("utf-8", b"", 0, 1, "invalid"),
        RuntimeError("boom"),
        RuntimeError(""),
        Exception(),
        SystemExit(1),
        KeyboardInterrupt(),
        ValueError("could not connect to the database"),
        caused(ValueError("not allowed"), ImportError("psycopg")),
        caused(PermissionError("denied"), ConnectionResetError(), explicit=False),
        caused(QueryBlocked("blocked"), caused(RuntimeError("x"), TimeoutError())),
    ],
    ids=repr,
)
def test_a_broken_tool(error: BaseException) -> None:
    assert not is_refusal(error)


def test_a_circle_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    caused(caused(first, second), second)
    second.__cause__ = first
    assert is_refusal(first)


@pytest.mark.parametrize("text", ["", "Request blocked", "Access denied", "403 Forbidden", "Connections are blocked"])
def test_a_text_that_is_no_breakdown(text: str) -> None:
    assert not is_breakdown(text)


def is_refusal(error: BaseException) -> bool:
    raised = _raised(error)
    return is_refusal_exception(raised["types"], raised["causes"], raised["text"])
