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

from agenteval.core.authentic import Seal
from agenteval.core.errors import InfrastructureError
from agenteval.core.files.cached import read_cache_file
from agenteval.core.files.writing import append_to_file, make_directory

# The field of a line that contains the code of the others.
_CODE = "mac"
_NAME = "judgement"


class JudgementCache:
    """A file of judgements.

    Invalid lines and those that the seal does not confirm are skipped; if the file cannot be written, judgements are
    not cached.

    Args:
        path: the file.
        seal: decides which lines are believed; its codes are an additional field, which FluxLoop ignores.
    """

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._seal = seal

    def get(self, key: str, server: str) -> str | None:
        """Return a judgement; ``None`` if it is not cached.

        Args:
            key: from ``judgement_key``.
            server: the address of the judge, which FluxLoop's key does not contain.
        """
        for record in reversed(self._records.get(key, ())):
            content = {name: value for name, value in record.items() if name != _CODE}
            if self._seal.confirms(record.get(_CODE), _NAME, server, key, _canonical(content)):
                response: str = record["response"]
                return response
        return None

    def put(
        self, key: str, server: str, *, raw_score: float, reason: str, response: str, parameters: Mapping[str, Any]
    ) -> None:
        """Store a judgement.

        Args:
            key: from ``judgement_key``.
            server: as for ``get``.
            raw_score: score on the judge's scale.
            reason: the judge's reason.
            response: the judge's reply.
            parameters: the model's parameters, as in the suite.
        """
        if self.get(key, server) is not None:
            return
        line = _line(
            {
                "key": key,
                "raw_score": raw_score,
                "reason": reason,
                "response": response,
                "model_parameters": dict(parameters),
            }
        )
        # As a reader finds it, which differs for values that JSON does not have.
        record = json.loads(line)
        code = self._seal.code(_NAME, server, key, _canonical(record))
        if code is not None:
            record[_CODE] = code
            line = _line(record)
        self._records.setdefault(key, []).append(record)
        with contextlib.suppress(OSError, InfrastructureError):
            self._append(line)

    def _append(self, line: bytes) -> None:
        """Append one line in a single write, so that several processes can append at the same time."""
        make_directory(self._path.parent)
        descriptor = append_to_file(self._path.parent, self._path.name)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                # A previous writer may have been killed in the middle of a line.
                line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    @cached_property
    def _records(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        with contextlib.suppress(OSError):
            for line in (read_cache_file(self._path) or b"").splitlines():
                with contextlib.suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if isinstance(record, dict) and _are_texts(record.get("key"), record.get("response")):
                        found.setdefault(record["key"], []).append(record)
        return found


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _canonical(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)


def judgement_key(
    *, evaluator: str, model: str, parameters: Mapping[str, Any], prompt: str, trace_id: Any, iteration: Any
) -> str:
    """Return the unique key of a judgement, which is FluxLoop's if the prompt is FluxLoop's.

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
