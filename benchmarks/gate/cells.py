"""The simulated cells and their expected figures, from ``expected.json``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from benchmarks.gate.chains import ChangedChain, CleanChain, Undone
from benchmarks.gate.decline import Decline
from benchmarks.gate.dodges import Attempts, Losses
from benchmarks.gate.pull_requests import Bound, PullRequest, Repeating
from benchmarks.gate.tally import Measures, Tally
from benchmarks.gate.worlds import World

from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings

Rule = Literal["limit", "equal", "equal on average", "cost"]

_FILE = Path(__file__).with_name("expected.json")
# Fewer labelings than the gate draws, to save time, and runs of the usual length; both as in the expected figures.
_DRAWS, _HEAD_TO_HEAD_CALLS = 1999, 0


class Cell(Protocol):
    """What can be simulated again and again."""

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return what one replication measured."""


KINDS: Mapping[str, Callable[..., Cell]] = {
    "pull request": PullRequest,
    "repeating": Repeating,
    "clean chain": CleanChain,
    "changed chain": ChangedChain,
    "undone": Undone,
    "decline": Decline,
    "losses": Losses,
    "attempts": Attempts,
    "bound": Bound,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell and its expected figures.

    Args:
        name: the cell as text.
        cell: the cell.
        replications: replications of the expected figures.
        expected: expected mean of each measure.
        is_quick: whether it is part of the quick benchmark.
    """

    name: str
    cell: Cell
    replications: int
    expected: Mapping[str, float]
    is_quick: bool


@dataclass(frozen=True, kw_only=True)
class Table:
    """Some cells with the same measures.

    Args:
        key: its letter.
        title: what it shows.
        checks: measure → rule.
        rows: the cells.
    """

    key: str
    title: str
    checks: Mapping[str, Rule]
    rows: tuple[Row, ...]


def read_tables() -> list[Table]:
    """Return all tables."""
    found: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return [
        Table(
            key=key,
            title=table["title"],
            checks=table["checks"],
            rows=tuple(_row(row, row.get("kind", table["kind"])) for row in table["rows"]),
        )
        for key, table in found.items()
    ]


def simulate(row: Row, first: int, replications: int) -> Tally:
    """Simulate the replications ``first``, ``first + 1``, … of a cell; each has a separate seed."""
    seed = zlib.crc32(repr(row.cell).encode())
    numbers = range(first, first + replications)
    return sum((Tally.of(row.cell.replicate(np.random.default_rng([seed, number]))) for number in numbers), Tally())


def _row(row: dict[str, Any], kind: str) -> Row:
    fields = dict(row["cell"])
    words = [row["name"]] if "name" in row else []
    words += [_words(name, value) for name, value in {**fields.pop("world", {}), **fields}.items()]
    if "world" in row["cell"]:
        fields["world"] = World(**row["cell"]["world"])
    return Row(
        name=", ".join(words) or "usual",
        cell=KINDS[kind](**fields, settings=_settings(row.get("settings", {}))),
        replications=row["replications"],
        expected=row["expected"],
        is_quick=row.get("quick", False),
    )


def _settings(changes: Mapping[str, Any]) -> GateSettings:
    values: dict[str, Any] = {"draws": _DRAWS, "head_to_head_calls": _HEAD_TO_HEAD_CALLS}
    values |= {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    return replace(NAMED_SETTINGS[values.pop("named", "default")], **values)


def _words(name: str, value: object) -> str:
    words = name.replace("_", " ")
    if value is True:
        return words
    if value is False:
        return f"not {words}"
    return str(value) if isinstance(value, str) else f"{words} {value:g}"
