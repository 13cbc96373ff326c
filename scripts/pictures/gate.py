"""The picture of `docs/gate.md`: how often worse changes are found, from the cells of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.gate.__main__ import CELLS
from scripts.pictures.drawing import WIDTH, bar, label, picture

_CHANGES = {
    "standard · one 0 · beside": "one case now always fails",
    "standard · mean 10 · beside": "the mean drops by 0.10",
    "k=5 · mean 5 · beside": "the mean drops by 0.05, five iterations",
    "standard · mean 5 · beside": "the mean drops by 0.05",
    "N=20 · mean 10 · beside": "the mean drops by 0.10, 20 cases",
    "N=5 · mean 20 · beside": "the mean drops by 0.20, 5 cases",
}
_LEFT, _RIGHT = 20.0, WIDTH - 20.0


def found() -> str:
    """Draw how often worse changes are found; 50 cases with three iterations, if nothing else is named."""
    published = {cell.name: cell.published for cell in CELLS}
    parts, told = [label(_LEFT, 26, "How often a worse change is found", "strong")], []
    for number, (cell, text) in enumerate(_CHANGES.items()):
        y = 52 + 46 * number
        length = (_RIGHT - _LEFT - 60) * published[cell] / 100
        share = f"{published[cell]:.0f} %"
        parts += [
            label(_LEFT, y, text),
            bar(_LEFT, y + 7, _RIGHT - _LEFT - 60, 14, "band"),
            bar(_LEFT, y + 7, length, 14, "same"),
            label(_RIGHT, y + 19, share, "strong", "end"),
        ]
        told.append(f"{text}: {share}")
    return picture("What the gate finds", f"{'; '.join(told)}.", 48 + 46 * len(_CHANGES), parts)


PICTURES: Mapping[str, Callable[[], str]] = {"gate-found": found}
