"""Reads the files of other tools: JSON, and the JSON Lines of FluxLoop with its summary beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import read_regular
from agenteval.results.importers import fluxloop, holodeck, promptfoo
from agenteval.results.importers.base import finite
from agenteval.results.importers.fluxloop import is_summary, is_trace
from agenteval.results.store import LARGEST_OF_OTHERS, RESULTS_FILE, no_results

IMPORTERS = (fluxloop.IMPORTER, holodeck.IMPORTER, promptfoo.IMPORTER)
_UNDERSTOOD = ", ".join(("results.json of agenteval", *(importer.files for importer in IMPORTERS)))
#: Number of mistakes that a message lists.
MOST_NAMED = 20
_TRACES, _SUMMARY = "per_trace.jsonl", "summary.json"
#: The files that are looked for in a folder without results.json. FluxLoop writes an evaluation into a folder of the
#: experiment. The experiment has another summary.json.
FILES_IN_FOLDER = (_TRACES, f"evaluation/{_TRACES}", f"evaluation/{_SUMMARY}", _SUMMARY)
# Suites and configurations; results are JSON.
_SUITES = frozenset({".yaml", ".yml", ".toml"})
_NO_TRACE = "not a scored trace: it needs `scores`, `final_score` and `pass`"


@dataclass(frozen=True)
class ImportedFile:
    """A file.

    Attributes:
        value: its JSON; for JSON Lines a list of all lines.
        lines: the numbers of these lines; empty for other files.
    """

    file: Path
    content: bytes = field(repr=False)
    value: Any = field(repr=False)
    lines: tuple[int, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it seems to be a file of agenteval, which is broken if nothing else can read it."""
        return isinstance(self.value, dict) and "schema_version" in self.value


def wrong(message: str, file: Path, line: int | None = None, path: str = "") -> Problem:
    """Return a problem of a file."""
    return Problem(message, file=str(file), line=line, path=path, kind=Kind.RESULTS)


def unknown(file: Path) -> ConfigError:
    """Return the error of a file of no known tool."""
    return ConfigError(wrong(f"not the results of a run; understood are: {_UNDERSTOOD}", file))


def read_files(path: Path) -> tuple[ImportedFile, ...]:
    """Return the file; for FluxLoop both files, the traces first.

    Raises:
        ConfigError: a file does not exist, is too large, or is not JSON.
    """
    if path.is_dir():
        found = next((path / name for name in FILES_IN_FOLDER if (path / name).is_file()), None)
        if found is None:
            names = ", ".join((RESULTS_FILE, *FILES_IN_FOLDER))
            raise ConfigError(wrong(f"no run in this folder (looked for {names})", path))
        path = found
    first = _read(path)
    if not first.lines and not is_summary(first.value):
        return (first,)
    beside = path.with_name(_SUMMARY if first.lines else _TRACES)
    if not beside.is_file():
        return (first,)
    second = _read(beside)
    traces, summary = (first, second) if first.lines else (second, first)
    if not traces.lines or not is_summary(summary.value):
        return (first,)
    # A summary with another count belongs to another evaluation.
    return (traces, summary) if summary.value["total_traces"] == len(traces.value) else (first,)


def _read(file: Path) -> ImportedFile:
    try:
        content = read_regular(file, limit=LARGEST_OF_OTHERS)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(no_results(file)) from None
    except OSError as error:
        raise ConfigError(wrong(f"cannot be read: {error.strerror}", file)) from None
    except UnicodeDecodeError:
        raise ConfigError(wrong("not UTF-8 text", file)) from None
    if file.suffix.lower() in _SUITES:
        raise ConfigError(wrong(f"this is a suite, not results; run it: agenteval run {file}", file))
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        return _lines(file, content, text, error)
    return ImportedFile(file, content, [value], (1,)) if is_trace(value) else ImportedFile(file, content, value)


def _loads(text: str) -> Any:
    """Parse JSON; NaN, infinity and numbers like ``1e999`` become ``None``."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=lambda digits: finite(float(digits)))


def _lines(file: Path, content: bytes, text: str, error: Exception) -> ImportedFile:
    """Return the file as JSON Lines if its first line is one of FluxLoop's.

    Args:
        error: why the file is not one JSON document.
    """
    lines = list(_parsed(text))
    problems = [wrong(why, file, number) for number, _, why in lines if why]
    if not lines or lines[0][2]:
        # Lines of another tool, or not JSON Lines.
        raise unknown(file) if lines and isinstance(lines[0][1], dict) else _no_json(file, error)
    if len(problems) > MOST_NAMED:
        problems[MOST_NAMED:] = [wrong(f"{len(problems) - MOST_NAMED} more lines are wrong", file)]
    if problems:
        raise ConfigError(problems)
    return ImportedFile(file, content, [value for _, value, _ in lines], tuple(number for number, _, _ in lines))


def _parsed(text: str) -> Iterator[tuple[int, Any, str]]:
    """Yield number and value of each line that is not blank, and the reason if it is not a trace."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = _loads(line)
            yield number, value, "" if is_trace(value) else _NO_TRACE
        except (ValueError, RecursionError) as error:
            yield number, None, f"not valid JSON: {error}"


def _no_json(file: Path, error: Exception) -> ConfigError:
    why, line = (error.msg, error.lineno) if isinstance(error, json.JSONDecodeError) else (str(error), None)
    return ConfigError(wrong(f"not valid JSON: {why}; understood are: {_UNDERSTOOD}", file, line))
