"""Tests of data classes that are written at their first object: they are like those of the standard library."""

from __future__ import annotations

import dataclasses
from threading import Thread
from typing import Any

import pytest

from agenteval.core.records import dataclass, field, replace


def test_class_does_what_the_standard_one_does() -> None:
    seen: list[Any] = []
    makes: Any = (dataclasses.dataclass, dataclass)
    for make in makes:

        @make(frozen=True)
        class Point:
            x: int
            key: str = field(default="secret", repr=False)
            marks: tuple[int, ...] = field(default_factory=tuple, compare=False)

        @make(frozen=True)
        class Place(Point):
            name: str = "here"

        point: Any = Point
        place: Any = Place
        here = place(1, marks=(2,))
        with pytest.raises(TypeError, match="x"):
            place()
        seen.append(
            [
                repr(here).replace(Place.__qualname__, ""),
                here == place(1),
                here == point(1),
                hash(here) == hash(place(1)),
                replace(here, x=3).x,
                [item.name for item in dataclasses.fields(place)],
                place.name,
                hasattr(place, "marks"),
                here.marks,
                dataclasses.asdict(here),
            ]
        )
    assert seen[0] == seen[1]


def test_object_that_may_change_has_no_hash() -> None:
    @dataclass
    class Counter:
        n: int = 0

    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_fields_are_there_before_the_first_object() -> None:
    @dataclass
    class Pair:
        left: int
        right: int

    assert dataclasses.is_dataclass(Pair)
    assert [item.name for item in dataclasses.fields(Pair)] == ["left", "right"]


def test_threads_may_make_the_first_objects() -> None:
    for _ in range(30):

        @dataclass(frozen=True)
        class Value:
            number: int

        made: list[Any] = []

        def make(kind: type[Any], made: list[Any]) -> None:
            made.append(kind(1))

        threads = [Thread(target=make, args=(Value, made)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Value(1)] * 4
