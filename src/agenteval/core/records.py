"""Data classes that cost little until they are used: a command uses few of those that it loads.

The standard library writes up to seven methods of each data class, in half a millisecond, when a module is loaded.
Here ``__init__`` is written at the first object, and the other methods are the same functions for all classes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, field, fields, is_dataclass, replace
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "fields", "is_dataclass", "replace"]

# Threads may make the first objects of a class at the same time.
_LOCK = RLock()
_NOT_COPIED = frozenset({"__init__", "__dataclass_fields__", "__dict__", "__weakref__"})

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """Do what the function of the standard library does; only type checkers forbid changes of a frozen object.

        With other options than ``frozen``, and below a class of the standard library, that function does it.
        """
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        above = [getattr(base, "__dataclass_params__", None) for base in cls.__mro__[1:]]
        if options.keys() - {"frozen"} or "__init__" in vars(cls) or any(there and there.frozen for there in above):
            return dataclasses.dataclass(cls, **options)

        def __init__(self, *args, **given):  # noqa: N807 - the method of the class
            _write(cls)
            cls.__init__(self, *args, **given)

        own = vars(cls)
        if "__eq__" not in own:
            cls.__eq__ = _eq
            if "__hash__" not in own or own["__hash__"] is None:
                cls.__hash__ = _hash if options.get("frozen") else None
        if "__repr__" not in own:
            cls.__repr__ = _repr
        cls.__dataclass_fields__ = _Unwritten(cls)
        cls.__init__ = __init__
        return cls


class _Unwritten:
    """The fields of a class that has no object yet."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        _write(self._cls)
        return self._cls.__dataclass_fields__  # type: ignore[attr-defined]


def _write(cls: Any) -> None:
    with _LOCK:
        own = vars(cls)
        if not isinstance(own["__dataclass_fields__"], _Unwritten):
            return
        # The methods of a twin: another thread never finds the class without a method to begin its objects.
        contents = {name: value for name, value in own.items() if name not in _NOT_COPIED}
        twin: Any = type(cls.__name__, cls.__bases__, contents)
        dataclasses.dataclass(repr=False, eq=False)(twin)
        for name in [name for name, value in contents.items() if isinstance(value, dataclasses.Field)]:
            if name in vars(twin):
                setattr(cls, name, vars(twin)[name])
            else:
                delattr(cls, name)
        for name in ("__dataclass_params__", "__match_args__", "__dataclass_fields__", "__init__"):
            setattr(cls, name, vars(twin)[name])


def _compared(cls: type) -> Any:
    """Return the function that reads what makes two objects equal."""
    found = vars(cls).get("__compared__")
    if found is None:
        names = [item.name for item in dataclasses.fields(cls) if item.compare]
        found = attrgetter(*names, "__class__") if names else attrgetter("__class__")
        cls.__compared__ = found  # type: ignore[attr-defined]
    return found


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    read = _compared(self.__class__)
    return read(self) == read(other)


def _hash(self: Any) -> int:
    return hash(_compared(self.__class__)(self))


def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
