"""Writes and reads results.json."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import RootModel, ValidationError

from agenteval.core.errors import ConfigError, Problem, write_error
from agenteval.core.runtime import gc_paused
from agenteval.results.archive import Archive
from agenteval.results.model import SCHEMA_VERSION, PoolCase, PoolEntry, Results

RESULTS_FILE = "results.json"
_BUFFER = 1 << 18  # bytes
_NO_CASES = '"cases": []'
_NO_POOLED = '"cases": {}'
_POOL_INDENT = " " * 3
_OLD_BASELINE = (
    "the baseline was written by an earlier agenteval, which kept no fingerprint of each metric: cases are compared "
    "by their ids, and this run starts a new pool of baseline runs"
)
_PoolCases = RootModel[dict[str, PoolCase]]


def write_atomic(path: Path, text: str | Iterable[str]) -> None:
    """Write a file atomically.

    Args:
        path: the file.
        text: its content, as one text or in pieces.

    Raises:
        InfrastructureError: the directory cannot be written, or the disk is full.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise write_error(f"cannot write to {path.parent}", path.parent, error) from None
    try:
        with os.fdopen(
            handle, "w", buffering=_BUFFER, encoding="utf-8", errors="backslashreplace", newline=""
        ) as file:
            file.writelines([text] if isinstance(text, str) else text)
        # mkstemp creates files that only their owner can read; reports are for everyone.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException as error:
        # Also if producing the text failed, or after Ctrl-C.
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        if isinstance(error, OSError):
            raise write_error(f"cannot write {path}", path.parent, error) from None
        raise


def results_json(results: Results, archive: Archive) -> Iterator[str]:
    """Yield the text of results.json in pieces: one line per case.

    Args:
        results: the run.
        archive: contains the full cases.
    """
    suites = [suite.model_copy(update={"cases": []}) for suite in results.suites]
    pool = [entry.model_copy(update={"cases": {}}) for entry in results.pool]
    current = {"schema_version": SCHEMA_VERSION, "suites": suites, "pool": pool}
    frame = results.model_copy(update=current).model_dump_json(indent=1)
    # Suites precede any other object with this key, and in a text its quotes would be escaped.
    *heads, rest = frame.split(_NO_CASES, len(suites))
    for suite, head in zip(results.suites, heads, strict=True):
        yield f'{head}"cases": ['
        separator = "\n"
        for text in archive.texts(suite):
            yield f"{separator}{text}"
            separator = ",\n"
        yield "]"
    *heads, end = rest.split(_NO_POOLED, len(pool))
    for entry, head in zip(results.pool, heads, strict=True):
        yield f'{head}"cases": '
        yield from _pooled(archive.pooled(entry))
    yield f"{end}\n"


def _pooled(parts: Iterable[Mapping[str, PoolCase]]) -> Iterator[str]:
    """Yield the cases of the pool as one object, with the file's indentation."""
    start = "{"
    for part in parts:
        if part:
            lines = _PoolCases(dict(part)).model_dump_json(indent=1)[1:-2]
            yield start + lines.replace("\n", f"\n{_POOL_INDENT}")
            start = ","
    yield "{}" if start == "{" else f"\n{_POOL_INDENT}}}"


def read_results(path: Path) -> Results:
    """Read a results file.

    Args:
        path: the file, or the report directory that contains ``results.json``.

    Raises:
        ConfigError: missing, unreadable, not agenteval results, or from a newer version.
    """
    file, content = _content(path)
    return parse_results(content, str(file))


def _content(path: Path) -> tuple[Path, bytes]:
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        return file, file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(Problem("no such results file", file=str(file))) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None


def parse_results(content: bytes, name: str) -> Results:
    """Parse the content of a results file; see `read_results`.

    Args:
        content: the content of a results.json.
        name: its name in error messages.

    Raises:
        ConfigError: not agenteval results, or from a newer version.
    """
    try:
        with gc_paused():
            return _without_old_fingerprints(Results.model_validate_json(content))
    except ValidationError as error:
        raise ConfigError(_unreadable(content, name, error)) from None


def read_baseline(path: Path) -> tuple[Results, tuple[str, ...]]:
    """Read a results file to compare with; damaged runs in its pool are omitted.

    Args:
        path: see `read_results`.

    Returns:
        The results without the damaged entries of the pool, and a message about the omitted ones.

    Raises:
        ConfigError: see `read_results`.
    """
    file, content = _content(path)
    return parse_baseline(content, str(file))


def parse_baseline(content: bytes, name: str) -> tuple[Results, tuple[str, ...]]:
    """Parse the content of a results file to compare with; see `read_baseline`.

    Args:
        content: the content of a results.json.
        name: its name in error messages.

    Raises:
        ConfigError: not agenteval results, or from a newer version.
    """
    notes: tuple[str, ...] = ()
    try:
        results = parse_results(content, name)
    except ConfigError as error:
        rest = _without_broken_pool(content)
        if rest is None:
            raise error from None
        results, notes = rest
    return results, notes if results.schema_version == SCHEMA_VERSION else (*notes, _OLD_BASELINE)


def _without_old_fingerprints(results: Results) -> Results:
    """Results of version 1 without fingerprints, which covered question and metrics together.

    Cases of earlier runs that differ from the same case of the file's own run are dropped.
    """
    if results.schema_version != 1:
        return results
    own = next((entry.cases for entry in results.pool if entry.run_id == results.run.id), {})
    pool = [
        entry.model_copy(
            update={
                "cases": {
                    case_id: case.model_copy(update={"fingerprint": ""})
                    for case_id, case in entry.cases.items()
                    if case_id not in own or case.fingerprint in {"", own[case_id].fingerprint}
                }
            }
        )
        for entry in results.pool
    ]
    return results.model_copy(update={"pool": pool})


def _without_broken_pool(content: bytes) -> tuple[Results, tuple[str, ...]] | None:
    """Return the results without damaged pool entries, if the rest is valid."""
    try:
        value = json.loads(content)
        pool = value.pop("pool")
        results = Results.model_validate(value)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return None
    if not isinstance(pool, list):
        return results, ("the baseline's pool of earlier runs is damaged and omitted",)
    sound = [entry for item in pool if (entry := _pool_entry(item)) is not None]
    broken = len(pool) - len(sound)
    if not broken:
        return None
    what = "1 run of the baseline's pool is" if broken == 1 else f"{broken} runs of the baseline's pool are"
    results = _without_old_fingerprints(results.model_copy(update={"pool": sound}))
    return results, (f"{what} damaged and omitted",)


def _pool_entry(value: object) -> PoolEntry | None:
    try:
        return PoolEntry.model_validate(value)
    except ValidationError:
        return None


def _unreadable(content: bytes, file: str, error: ValidationError) -> Problem:
    try:
        value = json.loads(content)
    except json.JSONDecodeError as broken:
        return Problem(f"not valid JSON: {broken.msg}", file=file, line=broken.lineno)
    except (ValueError, RecursionError) as broken:
        return Problem(f"not valid JSON: {broken}", file=file)
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return Problem(
            f"written by a newer agenteval (schema_version {version}, this one reads {SCHEMA_VERSION})", file=file
        )
    if version is None:
        return Problem("not a results file of agenteval (it has no schema_version)", file=file)
    first = error.errors()[0]
    path = ".".join(str(step) for step in first["loc"])
    return Problem(f"not a results file of agenteval: {first['msg']}", file=file, path=path)
