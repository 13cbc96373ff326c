"""Opens the page of a report in the browser: ``agenteval open``."""

from __future__ import annotations

import contextlib
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.store import RESULTS_FILE

_REPORT = "report.html"


# A browser is shown on one of these, or is the one that the user names.
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def report_page(path: Path) -> Path:
    """Return the page that a path names.

    Raises:
        ConfigError: it does not exist, or cannot be read.
    """
    try:
        return _page(path)
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(path), kind=Kind.RESULTS)) from None


def _page(path: Path) -> Path:
    page = path / _REPORT if path.is_dir() else path
    if page.is_file() and page.suffix == ".html":
        return page
    if page == path and path.exists():
        raise ConfigError(Problem("this is not a page; name a report directory", file=str(path), kind=Kind.RESULTS))
    if page.with_name(RESULTS_FILE).is_file():
        raise ConfigError(
            Problem(f"no such page; write it with: agenteval report {path}", file=str(page), kind=Kind.RESULTS)
        )
    raise ConfigError(Problem("no such page; a run writes it: agenteval run", file=str(page), kind=Kind.RESULTS))


def show(page: Path, environment: Mapping[str, str]) -> None:
    """Open a page in the browser, if there is one that has a window."""
    if _has_display(environment):
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(page.resolve().as_uri())


def _has_display(environment: Mapping[str, str]) -> bool:
    """Return whether a browser can show a window; one in the terminal would take the place of the output."""
    own_windows = sys.platform in {"darwin", "win32"} and "SSH_CONNECTION" not in environment
    return own_windows or any(environment.get(name) for name in _DISPLAYS)
