"""Keeps judgements in a file that FluxLoop can read, too: JSON Lines, one judgement per line."""

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

    Lines that are none are passed over; a file that cannot be written only costs money.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> str | None:
        """What the judge said; ``None`` if it was not asked before."""
        return self._responses.get(key)

    def put(self, key: str, raw_score: float, reason: str, response: str, parameters: Mapping[str, Any]) -> None:
        """Keep a judgement.

        Args:
            key: from ``judgement_key``.
            raw_score: on the judge's scale.
            reason: for it.
            response: what the judge said.
            parameters: of the model, as the suite has them.
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
        """Add one line in one piece, so that several processes may do so at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                # Whoever wrote last may have been stopped in the middle of a line.
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
    """What tells a judgement apart from every other one, as FluxLoop computes it.

    Args:
        evaluator: its name.
        model: as the suite names it.
        parameters: of the model, as the suite has them.
        prompt: the template with its placeholders replaced.
        trace_id: of the trace.
        iteration: of the trace.
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
