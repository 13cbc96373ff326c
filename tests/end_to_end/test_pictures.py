"""The pictures of a run are those of a real one: no picture in the documentation is of an older version."""

from __future__ import annotations

from scripts.pictures import shown
from scripts.pictures.__main__ import FOLDER
from scripts.pictures.run import shown_run


def test_the_pictures_show_what_a_run_writes_and_prints() -> None:
    run = shown_run()

    stale = [
        name
        for name, draw in shown.PICTURES.items()
        if (FOLDER / f"{name}.svg").read_text(encoding="utf-8") != draw(run)
    ]

    assert stale == [], "run: make pictures"
