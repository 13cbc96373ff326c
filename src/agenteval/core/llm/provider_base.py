"""What the clients of the providers share: errors, limits of size, schemas; and models on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from json import JSONDecodeError
from typing import Any
from urllib.parse import urlsplit

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec, OptionRefusedError
from agenteval.core.runtime import localhost_hint
from agenteval.core.secrets import shortened

# The keys of these objects are names that the schema's author chose, so they can be "default" or "type".
_NAMES = frozenset({"properties", "$defs", "definitions"})


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which every object requires all its properties and forbids others."""
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMES and isinstance(value, Mapping):
            strict[key] = {name: _strict(item) for name, item in value.items()}
        elif key != "default":
            strict[key] = _strict(value)
    if strict.get("type") == "object" and isinstance(strict.get("properties"), Mapping):
        strict |= {"additionalProperties": False, "required": list(strict["properties"])}
    return strict


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict_schema(value)
    return [_strict(item) for item in value] if isinstance(value, list) else value


# The longest answers and vectors of today's models have less than 1 MB.
MAX_BYTES = 8_000_000


def limit_hooks(label: str) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Return the hooks with which a client refuses replies of more than ``MAX_BYTES`` after decompression.

    They are the ``event_hooks`` of ``AsyncClient`` of httpx, and of its successor httpx2: the providers' libraries
    use one or the other. Reading a reply that is too large raises ``LlmError``, which is not transient.
    """

    async def limit(response: Any) -> None:
        kind = type(response)
        received = kind(response.status_code, headers=response.headers, stream=response.stream)
        response.stream = kind(response.status_code, content=_limited(received, label)).stream
        # The new stream is decompressed.
        response.headers.pop("content-encoding", None)

    return {"response": [limit]}


async def _limited(response: Any, label: str) -> AsyncIterator[bytes]:
    size = 0
    try:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MAX_BYTES:
                raise LlmError(f"{label} sent a reply of more than {MAX_BYTES // 10**6} MB")
            yield chunk
    finally:
        await response.aclose()


_SERVER_ERRORS = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_WRONG_REQUEST = frozenset({400, 422})
_SHOWN = 300


def unreachable_error(model: ModelSpec, address: object, reason: object) -> LlmError:
    """Return the error for a server without an answer; transient, unless the failure is such an error already."""
    if isinstance(reason, LlmError):
        return reason
    return LlmError(f"{model.label} cannot be reached: {reason}{localhost_hint(str(address))}", transient=True)


def no_answer(model: ModelSpec, reason: object, is_cut: bool) -> LlmError:
    """Return the error for a reply without a text."""
    return LlmError(f"{model.label} gave no answer: {'max_tokens was reached' if is_cut else reason}")


def status_error(model: ModelSpec, status: int, body: object, headers: Mapping[str, str]) -> LlmError:
    """Return the error for an HTTP status; 408, 409, 429 and 5xx are transient, except for an exhausted quota."""
    is_transient = status in _TRANSIENT_STATUSES or status >= _SERVER_ERRORS
    if "insufficient_quota" in str(body):
        is_transient = False
    text = shortened(message_of(body), _SHOWN)
    if status in _REDIRECTS:
        to = shortened(_origin(headers.get("location") or ""), _SHOWN) or "no address"
        text = f"it redirects to {to}, which is not followed; set the model's endpoint to that server"
    return LlmError(
        f"{model.label} answered {status}{': ' if text else ''}{text}",
        transient=is_transient,
        retry_after_s=retry_after_s(headers),
    )


def _origin(location: str) -> str:
    """Return an address without what can be a secret: user, password and query."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def refusal(model: ModelSpec, status: int, body: object, options: Iterable[str]) -> OptionRefusedError | None:
    """Return the error for an option that the provider refused; ``None`` if the body names no option."""
    if status not in _WRONG_REQUEST:
        return None
    said = str(body)
    for option in options:
        # "response format" also matches "response_format"; "top_logprobs" does not match "logprobs".
        if re.search(rf"(?<!\w){option.replace('_', '[_ ]')}(?!\w)", said):
            return OptionRefusedError(f"{model.label} does not accept {option}", option)
    return None


def message_of(body: object) -> str:
    """Return the message in an error's body; providers nest it differently."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail") or ""
    return str(body or "")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds: ``retry-after-ms``, or ``Retry-After`` as number or date (RFC 9110)."""
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    value = headers.get("retry-after")
    if not value:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


class LibraryClient:
    """What the clients of OpenAI and Anthropic share: their libraries have the same exceptions.

    An option that is refused by name is omitted from later requests, and the call is repeated without it.
    """

    def __init__(self, model: ModelSpec, library: Any, client: Any, company: str) -> None:
        self._model = model
        self._library = library
        self._client = client
        self._company = company
        self._refused: set[str] = set()

    def _accepted(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name not in self._refused}

    async def _sent(self, request: Awaitable[Any], options: Iterable[str]) -> Any:
        model, library = self._model, self._library
        try:
            return await request
        except library.APIConnectionError as error:
            raise unreachable_error(model, self._client.base_url, error.__cause__ or error) from None
        except library.APIStatusError as error:
            refused = refusal(model, error.status_code, error.body, options)
            if refused is not None:
                self._refused.add(refused.option)
                raise refused from None
            raise status_error(model, error.status_code, error.body, error.response.headers) from None
        except getattr(library, f"{self._company}Error") as error:
            raise LlmError(f"{model.label}: {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            what = "is not JSON" if isinstance(error, JSONDecodeError) else f"does not have {self._company}'s format"
            raise LlmError(f"{model.label} sent a reply that {what}: {error}", transient=True) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class LocalProvider:
    """A static embedding model: a directory, or a name on the Hugging Face Hub, from which it is downloaded once."""

    def __init__(self, model: ModelSpec) -> None:
        self._model = model
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def complete(self, _call: Call) -> Completion:
        """Raise ``LlmError``: embedding models do not generate text."""
        raise LlmError(f"{self._model.label} makes embeddings only")

    async def embed(self, text: str) -> Completion:
        """Return the vector of a text."""
        try:
            async with self._loading:
                await asyncio.to_thread(self._load)
            vector = await asyncio.to_thread(lambda: self._static_model.encode(text))
        except Exception as error:  # noqa: BLE001 - the library's dependencies raise any exception
            said = f"{type(error).__name__}: {error}"
            needed = "" if self._is_loaded else " (needed: a static model of model2vec)"
            raise LlmError(f"{self._model.label} cannot be used{needed}: {said}") from None
        return Completion(text=json.dumps([float(value) for value in vector]))

    async def close(self) -> None:
        """Do nothing: the model has no connections."""

    def _load(self) -> None:
        self._is_loaded = self._static_model is not None

    @cached_property
    def _static_model(self) -> Any:
        from model2vec import StaticModel

        return StaticModel.from_pretrained(self._model.name)
