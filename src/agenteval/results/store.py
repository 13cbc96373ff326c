"""Writes and reads results.json."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from agenteval.errors import ConfigError, InfrastructureError, Problem
from agenteval.results.model import SCHEMA_VERSION, Results

RESULTS_FILE = "results.json"


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all.

    Raises:
        InfrastructureError: the directory cannot be written, or the disk is full.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InfrastructureError(f"cannot write to {path.parent}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        # mkstemp makes files that only their owner reads; reports are for everybody.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None


def results_json(results: Results) -> str:
    """The text of results.json."""
    return results.model_dump_json(indent=1) + "\n"


def read_results(path: Path) -> Results:
    """Read a results file.

    Args:
        path: the file, or the report directory that holds a ``results.json``.

    Raises:
        ConfigError: missing, unreadable, no results of agenteval, or of a newer version of it.
    """
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(Problem("no such results file", file=str(file))) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None
    try:
        return Results.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(_unreadable(content, str(file), error)) from None


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
