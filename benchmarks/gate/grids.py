"""The simulated cells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.gate.simulate import Cell
from benchmarks.gate.worlds import Change, NoiseKind, World

WORLDS: tuple[World, ...] = ("stable", "typical", "noisy")
CHANGES: tuple[Change, ...] = ("none", "-2 pt", "-5 pt", "-10 pt", "one case", "3 %", "10 %")
_SIZES = (10, 30, 100, 300, 1000)
_HARDER: tuple[NoiseKind, ...] = ("correlated", "clusters", "drift 0.1", "drift 0.2")


def full_grid() -> list[Cell]:
    """Return every cell without a change, cells with figures for power, and the policies with harder noise."""
    return list(dict.fromkeys([*_null(), *_power(), *_harder(), *_control()]))


def quick_grid() -> list[Cell]:
    """Return about a dozen small cells of every kind."""
    return [
        Cell(world="typical", cases=30),
        Cell(world="noisy", cases=30, runs=10),
        Cell(world="stable", cases=100),
        Cell(world="typical", cases=100, noise="clusters"),
        Cell(world="typical", cases=100, runs=1, noise="drift 0.2"),
        Cell(world="typical", cases=100, runs=1, noise="drift 0.2", confirm="against-base"),
        Cell(world="typical", cases=100, change="-5 pt"),
        Cell(world="typical", cases=30, change="-10 pt", runs=10),
        Cell(world="stable", cases=30, change="-5 pt"),
        Cell(world="noisy", cases=100, change="one case"),
        Cell(world="typical", cases=100, change="10 %"),
        Cell(world="typical", cases=100, change="one case", confirm="against-base"),
    ]


def naive_grid(cells: list[Cell]) -> list[Cell]:
    """Return the designs of the head policy with independent noise, one per change, for gates without a pool."""
    return list(
        dict.fromkeys(
            Cell(world=cell.world, cases=cell.cases, iterations=cell.iterations, runs=1, change=change)
            for cell in cells
            for change in CHANGES
            if cell.noise == "independent" and cell.confirm == "rerun"
        )
    )


def _null() -> Iterator[Cell]:
    for world, cases, iterations, runs in product(WORLDS, _SIZES, (1, 3, 5), (1, 3, 5, 10)):
        yield Cell(world=world, cases=cases, iterations=iterations, runs=runs)


def _power() -> Iterator[Cell]:
    for world, cases, runs, change in product(WORLDS, _SIZES, (1, 3, 5, 10), CHANGES):
        yield Cell(world=world, cases=cases, runs=runs, change=change)


def _harder() -> Iterator[Cell]:
    for world, cases, runs, noise in product(WORLDS, (30, 100, 300), (1, 5, 10), _HARDER):
        yield Cell(world=world, cases=cases, runs=runs, noise=noise)


def _control() -> Iterator[Cell]:
    for world, cases, runs in product(WORLDS, (30, 100, 300), (1, 5)):
        for noise in ("independent", *_HARDER):
            yield Cell(world=world, cases=cases, runs=runs, noise=noise, confirm="against-base")
        for change in ("-5 pt", "-10 pt", "one case"):
            yield Cell(world=world, cases=cases, runs=runs, change=change, confirm="against-base")
