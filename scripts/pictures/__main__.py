"""Writes the pictures of the documentation; usage: `make pictures`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scripts.pictures import gallery, gate, shown
from scripts.pictures.run import shown_run

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
#: The names of all pictures.
NAMES = frozenset({*gate.PICTURES, *gallery.PICTURES, *shown.PICTURES})


def main() -> None:
    """Write every picture, and remove those that are not drawn any more."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in _pictures():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8", newline="\n")
    for file in FOLDER.glob("*.svg"):
        if file.stem not in NAMES:
            file.unlink()


def _pictures() -> Iterator[tuple[str, str]]:
    for name, draw in {**gate.PICTURES, **gallery.PICTURES}.items():
        yield name, draw()
    run = shown_run()
    for name, draw_run in shown.PICTURES.items():
        yield name, draw_run(run)


if __name__ == "__main__":
    main()
