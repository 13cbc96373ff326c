"""Stores replies on disk, so that the same question to the same model costs only once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.authentic import Seal
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.cached import read_cache_file, write_cache_file
from agenteval.core.llm.providers import endpoint
from agenteval.core.llm.spec import ModelSpec

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Call, Completion

#: The variable that names the directory of replies and files.
CACHE_DIRECTORY = "AGENTEVAL_CACHE"

# Part of every key: entries of an older format are not found.
_VERSION = 1
# The field of a file that contains the code of the others.
_CODE = "mac"
_NAME = "reply"


class ResponseCache:
    """One file per reply, named by a hash of everything that determines it.

    Args:
        directory: where the files are.
        seal: decides which files are believed.
    """

    def __init__(self, directory: Path, seal: Seal) -> None:
        self._directory = directory
        self._seal = seal

    def get(self, key: str) -> Completion | None:
        """Return the stored reply; ``None`` if it does not exist, is damaged, or was not written with the seal."""
        # Imported here: most runs call no model.
        from agenteval.core.llm.calls import Completion

        try:
            stored = json.loads(read_cache_file(self._path(key)) or b"")
            code = stored.pop(_CODE, None)
            if not self._seal.confirms(code, _NAME, key, _canonical(stored)):
                return None
            return Completion(
                text=str(stored["text"]),
                input_tokens=_count(stored["input_tokens"]),
                output_tokens=_count(stored["output_tokens"]),
                cost_usd=0.0,
                logprobs=stored["logprobs"],
                cached=True,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, key: str, completion: Completion) -> None:
        """Store a reply; errors are ignored, since a missing cache entry only costs another call."""
        content = {
            "text": completion.text,
            "input_tokens": completion.input_tokens,
            "output_tokens": completion.output_tokens,
            "logprobs": completion.logprobs,
        }
        code = self._seal.code(_NAME, key, _canonical(content))
        if code is not None:
            content[_CODE] = code
        with contextlib.suppress(OSError):
            write_cache_file(self._path(key), json.dumps(content).encode())

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)


def _count(stored: Any) -> int | None:
    """Return a stored number of tokens.

    Raises:
        ValueError: it is not one.
    """
    if stored is None or (isinstance(stored, int) and stored >= 0):
        return stored
    raise ValueError("not a number of tokens")


def cache_key(call: Call) -> str:
    """Return the key of a call's reply."""
    parts = [call.prompt, call.schema, call.schema_name, call.top_logprobs, call.sample]
    # Added only if there are options, so that the keys of calls without options stay the same.
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
    """Return ``AGENTEVAL_CACHE``, else ``agenteval`` in the user's cache directory.

    Raises:
        ConfigError: the user has no home directory.
    """
    own = os.environ.get(CACHE_DIRECTORY)
    if own:
        return Path(own)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError:
        message = f"the user has no home directory for the cache: set HOME, or a directory in {CACHE_DIRECTORY}"
        raise ConfigError(Problem(message, kind=Kind.VARIABLE)) from None
    return Path(base) / "agenteval" / "llm"


def files_directory() -> Path:
    """Return the cache directory of files that suites name by URL, next to the replies of models."""
    own = os.environ.get(CACHE_DIRECTORY)
    return Path(own) / "files" if own else default_directory().with_name("files")
