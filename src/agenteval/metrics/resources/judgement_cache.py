"""Caches judgements in a file in FluxLoop's format: JSON Lines, one judgement per line."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any


class JudgementCache:
    """A file of judgements.

    Invalid lines are skipped; if the file cannot be written, judgements are not cached.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> str | None:
        """Return a judgement; ``None`` if it is not cached."""
        return self._responses.get(key)

    def put(self, key: str, raw_score: float, reason: str, response: str, parameters: Mapping[str, Any]) -> None:
        """Store a judgement.

        Args:
            key: from ``judgement_key``.
            raw_score: on the judge's scale.
            reason: the judge's reason.
            response: the judge's reply.
            parameters: the model's parameters, as in the suite.
        """
        if key in self._responses:
            return
        self._responses[key] = response
        record = {
            "key": key,
            "raw_score": raw_score,
            "reason": reason,
            "response": response,
            "model_parameters": dict(parameters),
        }
        line = json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
        with contextlib.suppress(OSError):
            self._append(line)

    def _append(self, line: bytes) -> None:
        """Append one line in a single write, so that several processes can append concurrently."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                # The last writer may have been stopped in the middle of a line.
                line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    @cached_property
    def _responses(self) -> dict[str, str]:
        found: dict[str, str] = {}
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    key, response = record["key"], record["response"]
                except (ValueError, LookupError, TypeError, RecursionError):
                    continue
                if isinstance(key, str) and isinstance(response, str):
                    found[key] = response
        return found


def judgement_key(
    *, evaluator: str, model: str, parameters: Mapping[str, Any], prompt: str, trace_id: Any, iteration: Any
) -> str:
    """Return the unique key of a judgement, as FluxLoop computes it.

    Args:
        evaluator: the evaluator's name.
        model: its name in the suite.
        parameters: the model's parameters, as in the suite.
        prompt: the template with its placeholders replaced.
        trace_id: the trace's id.
        iteration: the trace's iteration.
    """
    content = {
        "evaluator": evaluator,
        "model": model,
        "model_parameters": dict(parameters),
        "prompt": prompt,
        "trace_id": trace_id,
        "iteration": iteration,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
