"""Runs all rows of a parametrised test in one test, which names the rows that fail.

Pytest needs some milliseconds for each test, in each of its processes. Most unit tests need less for a row.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

# Fewer rows stay tests of their own.
_MANY = 4
# Fixtures that each row gets anew.
_OF_A_ROW = frozenset({"tmp_path", "monkeypatch"})


@dataclass(frozen=True)
class _Row:
    label: str
    values: Mapping[str, Any]


def join_rows(members: type | Any) -> None:
    """Replace the parametrised tests of a module or class whose rows can share one test."""
    for name, test in list(vars(members).items()):
        if name.startswith("test_") and isinstance(test, FunctionType):
            rows = _rows(test)
            if rows and len(rows) >= _MANY:
                setattr(members, name, _joined(test, rows))


def _rows(test: FunctionType) -> Sequence[_Row] | None:
    """Return the rows of a test; ``None`` if it needs more than its rows and the fixtures that each row gets anew."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks or inspect.iscoroutinefunction(test) or hasattr(test, "hypothesis"):
        return None
    tables = [_table(mark) for mark in marks]
    names = set(inspect.signature(test).parameters) - {"self"}
    for table in tables:
        if not table:
            return None
        names -= set(table[0].values)
    if not names <= _OF_A_ROW:
        return None
    return [
        _Row(", ".join(row.label for row in rows), _merged(rows)) for rows in itertools.product(*filter(None, tables))
    ]


def _merged(rows: Sequence[_Row]) -> Mapping[str, Any]:
    return {name: value for row in rows for name, value in row.values.items()}


def _table(mark: pytest.Mark) -> Sequence[_Row] | None:
    """Return the rows of one mark; ``None`` if it has options or rows of a kind that only pytest handles."""
    names, rows, *rest = mark.args
    ids = mark.kwargs.get("ids")
    if rest or set(mark.kwargs) - {"ids"} or not isinstance(rows, Sequence):
        return None
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = []
    for number, row in enumerate(rows):
        # What `pytest.param` returns is a tuple of these three.
        values, marks, label = row if hasattr(row, "marks") else (row, (), None)
        if marks:
            return None
        if len(names) == 1 and not hasattr(row, "marks"):
            values = (values,)
        if label is None and ids is not None:
            label = ids[number] if isinstance(ids, Sequence) else ids(values[0])
        named = dict(zip(names, values, strict=True))
        table.append(_Row(str(label) if label else ", ".join(f"{n}={v!r:.200}" for n, v in named.items()), named))
    return table


def _joined(test: FunctionType, rows: Sequence[_Row]) -> Callable[..., None]:
    @functools.wraps(test)
    def every_row(*instance: Any, **fixtures: Any) -> None:
        failed: list[BaseException] = []
        skipped = None
        for number, row in enumerate(rows):
            with ExitStack() as stack:
                anew = dict(_of_row(fixtures, number, stack))
                try:
                    test(*instance, **row.values, **anew)
                except pytest.skip.Exception as skip:
                    skipped = skip
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the row: {row.label}")
                    failed.append(error)
        if failed:
            raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} rows fail", failed)
        if skipped:
            raise skipped

    signature = inspect.signature(test)
    kept = [one for name, one in signature.parameters.items() if name == "self" or name in _OF_A_ROW]
    every_row.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    every_row.pytestmark = [mark for mark in test.pytestmark if mark.name != "parametrize"]  # type: ignore[attr-defined]
    return every_row


def _of_row(fixtures: Mapping[str, Any], number: int, stack: ExitStack) -> Iterator[tuple[str, Any]]:
    for name, fixture in fixtures.items():
        if isinstance(fixture, Path):
            folder = fixture / f"row{number}"
            folder.mkdir()
            yield name, folder
        else:
            yield name, stack.enter_context(fixture.context())
