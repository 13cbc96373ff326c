"""Writes the pictures of the documentation; usage: `make pictures`."""

from __future__ import annotations

from pathlib import Path

from scripts.pictures.gate import PICTURES

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
