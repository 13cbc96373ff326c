"""What commands print: mistakes, suites, extensions; and ``agenteval open``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import webbrowser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agenteval.core import text as texts
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem, UserCodeError, problems_of
from agenteval.core.escape import terminal
from agenteval.core.mistakes import Line, LinePart, Mistake, Style, counted, mistakes, shown
from agenteval.core.plugins import ALLOWED_VARIABLE, Plugin
from agenteval.core.secrets import mask
from agenteval.report.words import count
from agenteval.results.store import RESULTS_FILE

if TYPE_CHECKING:
    from agenteval.run.resolve.suites import ListedSuite


_NARROWEST = 40
_HANG = 2
_STYLES: Mapping[Style, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "title": "bold",
    "frame": "bold blue",
    "mark": "bold red",
    "place": "",
    "note": "dim",
    "plain": "",
}


def fail(error: AgentEvalError, stream: TextIO | None = None, undone: str = "nothing was run") -> int:
    """Print every mistake of an error, each once, and return the exit status."""
    out = sys.stderr if stream is None else stream
    found = mistakes(problems_of(error))
    print_mistakes(found, out)
    # Only these are raised before anything runs.
    if isinstance(error, ConfigError | UserCodeError):
        is_mistake = error.exit_status == ConfigError.exit_status
        several = counted(found) if is_mistake and (len(found) > 1 or found[0].others) else ""
        if ended := "; ".join(filter(None, (several, undone))):
            _print([f"{ended} (exit status {error.exit_status})"], out)
    if isinstance(error, ConfigError) and error.fine:
        _print([terminal(mask(f"without problems: {', '.join(error.fine)}"))], out)
    return error.exit_status


def print_mistakes(found: Iterable[Mistake], stream: TextIO) -> None:
    """Print mistakes with their source lines, in colours if the stream is a terminal that has them."""
    colours = has_colours(stream, os.environ)
    # Only a terminal has a width: a log is searched for whole messages.
    columns = max(_NARROWEST, shutil.get_terminal_size().columns) if stream.isatty() else None
    for mistake in found:
        lines = [part for line in shown(mistake) for part in _wrapped(line, columns)]
        if colours:
            _print_in_colours(lines, stream)
        else:
            _print(("".join(span.text for span in line).rstrip() for line in lines), stream)
        print(file=stream)


def has_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether colours may be written to a stream."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _wrapped(line: Line, columns: int | None) -> Iterator[Line]:
    text = "".join(span.text for span in line)
    is_note = len(line) > 2 and line[1].style == "title" and line[2].style == "plain"
    if columns is None or texts.width(text) <= columns or not (is_note or line[0].style in {"error", "warning"}):
        yield line
        return
    hang = len(line[0].text) + 2 if is_note else _HANG
    for number, (start, end) in enumerate(texts.spans(text, columns - hang, first=columns)):
        indent = [LinePart(" " * hang)] if number else []
        yield [*indent, *_part(line, start, end)]


def _part(line: Line, start: int, end: int) -> Iterator[LinePart]:
    at = 0
    for span in line:
        if text := span.text[max(0, start - at) : max(0, end - at)]:
            yield LinePart(text, span.style)
        at += len(span.text)


def _print(lines: Iterable[str], stream: TextIO) -> None:
    for line in lines:
        print(line, file=stream)


def _print_in_colours(lines: Iterable[Line], stream: TextIO) -> None:
    # Imported here: rich takes 0.1 s.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines:
        # Use Text instead of str, because rich would parse brackets in untrusted text as markup.
        console.print(Text.assemble(*((span.text, _STYLES[span.style]) for span in line)), soft_wrap=True)


def suites_as_text(suites: Sequence[ListedSuite]) -> str:
    """Return one line for each suite."""
    return "\n".join(_line(suite) for suite in suites)


def _line(suite: ListedSuite) -> str:
    cases = "has mistakes" if suite.cases is None else count(suite.cases, "case")
    name = f" ({suite.name})" if suite.name != suite.path else ""
    return f"{suite.path}{name}: {suite.format or 'unknown format'}, {cases}"


def suites_as_json(suites: Sequence[ListedSuite]) -> str:
    """Return a JSON list in one line, in ASCII."""
    return json.dumps([asdict(suite) for suite in suites])


_HEAD = ("NAME", "GROUP", "DISTRIBUTION", "VERSION", "MAY RUN")


def as_table(plugins: Iterable[Plugin]) -> str:
    """Render extensions as aligned columns."""
    rows = [tuple(map(terminal, _cells(plugin))) for plugin in plugins]
    if not rows:
        return "no extensions are installed beside agenteval"
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *rows))
    return "\n".join(line.rstrip() for line in lines)


def _cells(plugin: Plugin) -> tuple[str, str, str, str, str]:
    if plugin.allowed:
        allowed = "yes"
    elif "." not in plugin.name:
        allowed = "no: the name needs a dot"
    else:
        allowed = f"no: not in {ALLOWED_VARIABLE}"
    return plugin.name, plugin.group, plugin.distribution, plugin.version, allowed


_REPORT = "report.html"


# A browser is shown on one of these, or is the one that the user names.
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def report_page(path: Path) -> Path:
    """Return the page that a path names."""
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
    own_windows = sys.platform in {"darwin", "win32"} and "SSH_CONNECTION" not in environment
    return own_windows or any(environment.get(name) for name in _DISPLAYS)
