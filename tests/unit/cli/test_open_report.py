"""`agenteval open` finds the page, and starts a browser only where one has a window."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agenteval.cli.output import report_page, show
from agenteval.core.errors import ConfigError


def test_a_directory_or_the_page_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("written/report.html", "written/results.json", "saved/results.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    Path("empty").mkdir()
    page = Path("written/report.html")
    assert (report_page(Path("written")), report_page(page)) == (page, page)
    table = {
        "nowhere": "nowhere: no such page; a run writes it: agenteval run",
        "empty": "empty/report.html: no such page; a run writes it: agenteval run",
        "saved": "saved/report.html: no such page; write it with: agenteval report saved",
        "x" * 300: f"{'x' * 300}: cannot be read: File name too long",
        "written/results.json": "written/results.json: this is not a page; name a report directory",
    }
    for name, message in table.items():
        with pytest.raises(ConfigError) as error:
            report_page(Path(name))
        assert str(error.value) == message


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a browser needs no display")
def test_a_browser_starts_only_with_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "a b" / "report.html"
    page.parent.mkdir()
    page.touch()
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for variables in ({}, {"DISPLAY": ""}, {"SSH_CONNECTION": "x"}):
        show(page, variables)
    assert opened == []
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        show(page, {name: ":0"})
    assert opened == [page.as_uri()] * 3
