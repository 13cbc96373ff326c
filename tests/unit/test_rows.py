"""The rows of a parametrised unit test are one test, which names the rows that fail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.rows import join_rows

_PLACES: list[Path] = []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "limit"), [(1, 3), (2, 3), (5, 3)], ids=["one", "two", "five"])
@pytest.mark.parametrize("sign", [1, -1])
def numbered(number: int, limit: int, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_TEST_ROW", str(number))
    _PLACES.append(tmp_path)
    assert number * sign < limit


@pytest.mark.parametrize("number", range(8))
def with_a_fixture(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Needs what each test has once."""


def joined(test: Any) -> Any:
    module = SimpleNamespace(test_it=test)
    join_rows(module)
    return module.test_it


def test_rows_that_fail_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExceptionGroup, match="1 of 6 rows fail") as caught:
        joined(numbered)(tmp_path=tmp_path, monkeypatch=monkeypatch)

    [error] = caught.value.exceptions
    assert isinstance(error, AssertionError)
    [note] = error.__notes__
    assert {"sign=1", "five"} <= set(note.removeprefix("in the row: ").split(", "))
    assert len(set(_PLACES)) == len(_PLACES) == 6


def test_marks_stay_and_parameters_go() -> None:
    test = joined(numbered)
    assert [mark.name for mark in test.pytestmark] == ["slow"]
    assert joined(with_a_fixture) is with_a_fixture


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_this_is_one_test(number: int, tmp_path: Path) -> None:
    assert tmp_path.name == f"row{number - 1}"
