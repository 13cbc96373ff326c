"""Stores replies on disk, so that the same question to the same model is paid for once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.llm.providers import endpoint
from agenteval.core.llm.spec import ModelSpec

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Call, Completion

# Part of every key: entries of an older format are not found.
_VERSION = 1


class ResponseCache:
    """One file per reply, named by a hash of everything that determines it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, key: str) -> Completion | None:
        """Return the stored reply; ``None`` if it does not exist or its file is damaged."""
        # Imported here: most runs ask no model.
        from agenteval.core.llm.calls import Completion

        try:
            stored = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Completion(
                text=str(stored["text"]),
                input_tokens=stored["input_tokens"],
                output_tokens=stored["output_tokens"],
                cost_usd=0.0,
                logprobs=stored["logprobs"],
                cached=True,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, completion: Completion) -> None:
        """Store a reply; errors are ignored, since a missing cache entry only costs another call."""
        path = self._path(key)
        content = {
            "text": completion.text,
            "input_tokens": completion.input_tokens,
            "output_tokens": completion.output_tokens,
            "logprobs": completion.logprobs,
        }
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file)
            Path(temporary).replace(path)

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"


def cache_key(call: Call) -> str:
    """Return the key of a call's reply."""
    parts = [call.prompt, call.schema, call.schema_name, call.top_logprobs, call.sample]
    # Only if there are options, so that the keys of other calls stay unchanged.
    return key_of(call.model, [*parts, dict(call.options)] if call.options else parts)


def key_of(model: ModelSpec, parts: Sequence[Any]) -> str:
    """Return a hash of everything that determines a reply, without the API key.

    Args:
        model: the model.
        parts: the question, as JSON values.
    """
    content = [
        _VERSION,
        model.provider,
        model.name,
        endpoint(model),
        model.api_version,
        model.temperature,
        model.max_tokens,
        model.top_p,
        *parts,
    ]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def default_directory() -> Path:
    """Return ``AGENTEVAL_CACHE``, else ``agenteval`` in the user's cache directory."""
    own = os.environ.get("AGENTEVAL_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "agenteval" / "llm"


def files_directory() -> Path:
    """Return the cache directory of files that suites name by URL, next to the replies of models."""
    own = os.environ.get("AGENTEVAL_CACHE")
    return Path(own) / "files" if own else default_directory().with_name("files")
