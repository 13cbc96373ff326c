"""Sends all calls of language models, with cache, budget, rate limits and retries."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import MOST_ALIKE, AgentEvalError, ConfigError, Kind, Problem, SameFailure
from agenteval.core.llm.budget import Budget, Limits, RateLimiter, cost_usd, with_usage
from agenteval.core.llm.models import LOCAL, LlmError, ModelSpec, OptionRefusedError, api_key, endpoint, reachable
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import missing_extra
from agenteval.core.shared_files import Seal, read_cache_file, write_cache_file

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Call, Completion, ModelCall, Provider

    Accept = Callable[[Completion], object]


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
    if stored is None or (isinstance(stored, int) and stored >= 0):
        return stored
    raise ValueError("not a number of tokens")


def cache_key(call: Call) -> str:
    """Return the key of a call's reply."""
    parts = [call.prompt, call.schema, call.schema_name, call.top_logprobs, call.sample]
    # Added only if there are options, so that the keys of calls without options stay the same.
    return key_of(call.model, [*parts, dict(call.options)] if call.options else parts)


def key_of(model: ModelSpec, parts: Sequence[Any]) -> str:
    """Return a hash of everything that determines a reply, without the API key."""
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


_LONGEST_WAIT_S = 60.0


class _AbandonedError(Exception):
    """The caller that sent a shared request was cancelled."""


def _anything(_: Completion) -> None:
    """Accept every answer."""


def _problem(completion: Completion, accept: Accept) -> AgentEvalError | None:
    try:
        accept(completion)
    except AgentEvalError as error:
        return LlmError(f"{error}; the answer was cut at max_tokens") if completion.is_cut else error
    return None


@dataclass(frozen=True)
class LlmSettings:
    """How models are called.

    Attributes:
        cache: the cache of replies; ``None`` for no cache.
        caches_agents: whether the cache also answers agents under test; otherwise only judges and embeddings.
        concurrency: maximum number of concurrent calls per provider.
        requests_per_minute: per provider; ``None`` means no limit.
        backoff_s: wait before the first retry, in seconds; it doubles with each retry.
        timeout_s: time limit of one attempt in seconds.
        seed: random seed of the waits; ``None`` for a random one.
    """

    limits: Limits = field(default_factory=Limits)
    cache: ResponseCache | None = None
    caches_agents: bool = False
    concurrency: int = 16
    requests_per_minute: float | None = None
    # As HoloDeck: three retries after 2, 4 and 8 seconds.
    retries: int = 3
    backoff_s: float = 2.0
    timeout_s: float = 60.0
    seed: int | None = None


def make_provider(model: ModelSpec) -> Provider:
    """Return the client for a model; its library is imported on first use."""
    if model.provider == LOCAL:
        return _local(model)
    model = reachable(model)
    if model.provider == "anthropic":
        from agenteval.core.llm.anthropic import AnthropicProvider

        return AnthropicProvider(model, api_key(model))
    if model.provider == "ollama":
        from agenteval.core.llm.ollama import OllamaProvider

        return OllamaProvider(model)
    from agenteval.core.llm.openai import OpenAIProvider

    return OpenAIProvider(model, api_key(model))


def _local(model: ModelSpec) -> Provider:
    missing = missing_extra(LOCAL)
    if missing is not None:
        raise ConfigError(Problem(f"{model.label} needs model2vec: {missing}", kind=Kind.JUDGE))
    from agenteval.core.llm.provider_base import LocalProvider

    return LocalProvider(model)


class Gateway:
    """The model calls of a run; created inside its event loop."""

    def __init__(self, settings: LlmSettings, provider_for: Callable[[ModelSpec], Provider] = make_provider) -> None:
        self._settings = settings
        self._provider_for = provider_for
        self._alike: dict[ModelSpec, SameFailure] = {}
        self._providers: dict[ModelSpec, Provider] = {}
        self._limiters: dict[str, RateLimiter] = {}
        self._under_way: dict[str, asyncio.Future[Completion]] = {}
        self._chance = random.Random(settings.seed)  # noqa: S311 - no secret depends on it
        self.budget = Budget(settings.limits)
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_calls = 0
        self.saved_usd = 0.0
        self.unpriced: set[str] = set()

    def dead(self) -> dict[ModelSpec, str]:
        """Return the error of each model of which every call failed alike."""
        return {model: str(alike.error) for model, alike in self._alike.items() if alike.is_dead}

    def check(self, model: ModelSpec) -> None:
        """Check, before any case runs, that a model can be called; raise ``MissingKeyError`` without its key."""
        self.provider(model)

    async def complete(self, call: Call, accept: Accept = _anything, timeout_s: float | None = None) -> Completion:
        """Send one prompt to a model; see ``exchange``."""
        # Imported here: most runs call no model.
        from agenteval.core.llm.calls import ModelCall

        # Answers can contain lone surrogates, which cannot be encoded.
        call = replace(call, prompt=call.prompt.encode("utf-8", "replace").decode())

        async def send() -> Completion:
            return await self.provider(call.model).complete(call)

        exchange = ModelCall(
            call.model, cache_key(call), _size(call), send, timeout_s, call.by_agent, call.may_repeat
        )
        return await self.exchange(exchange, accept)

    async def exchange(self, exchange: ModelCall, accept: Accept = _anything) -> Completion:
        """Send a question to a model.

        Equal questions at the same time share one request.

        Args:
            accept: raises an exception if the answer cannot be used; such an answer is not cached, and the question
                is sent once more.

        Raises:
            LlmError: the provider refused the request, or all attempts failed.
            BudgetSpentError: the budget of the run allows no further call.
        """
        cache = self._settings.cache
        if cache is None or (exchange.by_agent and not self._settings.caches_agents):
            return await self._usable(exchange, accept)
        found = cache.get(exchange.key)
        # An unusable cached answer is damaged or from an older version, so the question is sent again.
        if found is not None and _problem(found, accept) is None:
            self._record_cached(exchange.model, found)
            return found
        while (running := self._under_way.get(exchange.key)) is not None:
            with contextlib.suppress(_AbandonedError):
                shared = await asyncio.shield(running)
                self._record_cached(exchange.model, shared)
                return replace(shared, cost_usd=0.0, cached=True)
        return await self._first(exchange, accept, cache)

    def provider(self, model: ModelSpec) -> Provider:
        """Return the client of a model; requests to it go through ``exchange``."""
        found = self._providers.get(model)
        if found is None:
            found = self._providers[model] = self._provider_for(model)
        return found

    async def close(self) -> None:
        """Close every provider's connections."""
        await asyncio.gather(*(provider.close() for provider in self._providers.values()))
        self._providers.clear()

    def _record_cached(self, model: ModelSpec, completion: Completion) -> None:
        self.cached_calls += 1
        self.saved_usd += cost_usd(model, completion.input_tokens, completion.output_tokens) or 0.0

    async def _first(self, exchange: ModelCall, accept: Accept, cache: ResponseCache) -> Completion:
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._under_way[exchange.key] = future
        try:
            completion = await self._usable(exchange, accept)
        except BaseException as error:
            # Waiting callers get the same error. If this caller was cancelled, one of them sends the question again.
            future.set_exception(error if isinstance(error, Exception) else _AbandonedError())
            future.exception()  # marks the exception as retrieved; there may be no waiting caller
            raise
        else:
            cache.put(exchange.key, completion)
            future.set_result(completion)
            return completion
        finally:
            del self._under_way[exchange.key]

    async def _usable(self, exchange: ModelCall, accept: Accept) -> Completion:
        """Send a question, and once more if its answer cannot be used; an answer that was cut would be cut again."""
        first = await self._attempts(exchange)
        problem = _problem(first, accept)
        if problem is None:
            return first
        if first.is_cut or exchange.by_agent or (exchange.may_repeat is not None and not exchange.may_repeat()):
            raise problem
        try:
            second = await self._attempts(exchange)
        except AgentEvalError:
            raise problem from None
        problem = _problem(second, accept)
        if problem is not None:
            raise problem
        unknown = first.cost_usd is None or second.cost_usd is None
        return replace(second, cost_usd=None if unknown else (first.cost_usd or 0.0) + (second.cost_usd or 0.0))

    async def _attempts(self, exchange: ModelCall) -> Completion:
        settings = self._settings
        limiter = self._limiters.setdefault(
            exchange.model.provider, RateLimiter(settings.concurrency, settings.requests_per_minute)
        )
        alike = self._alike.setdefault(exchange.model, SameFailure())
        attempt = 0
        while True:
            try:
                async with limiter:
                    if alike.is_final and not exchange.by_agent:
                        why = f"after the first {MOST_ALIKE} failures alike, the model was not asked again"
                        raise LlmError(f"{alike.error}; {why}")
                    completion = await self._send(exchange)
                alike.add(None)
                return completion
            except OptionRefusedError:
                # The next request omits the option; the number of options is finite.
                continue
            except LlmError as error:
                is_last = not error.transient or attempt == settings.retries
                # Each attempt without an answer takes the whole time limit.
                if is_last or error.is_timeout:
                    alike.add(str(error))
                if is_last:
                    raise _after(error, attempt) from None
                await asyncio.sleep(self._wait_s(attempt, error))
            attempt += 1

    async def _send(self, exchange: ModelCall) -> Completion:
        model = exchange.model
        limit_s = exchange.timeout_s or self._settings.timeout_s
        reservation = await self.budget.open(model.label, exchange.size)
        try:
            async with asyncio.timeout(limit_s):
                completion = with_usage(await exchange.send())
            self.input_tokens += completion.input_tokens or 0
            self.output_tokens += completion.output_tokens or 0
            reservation.answered = True
            reservation.cost_usd = cost_usd(model, completion.input_tokens, completion.output_tokens)
            if reservation.cost_usd is None:
                self.unpriced.add(model.label)
            reservation.prompt_usd = cost_usd(model, completion.input_tokens, 0)
            return replace(completion, cost_usd=reservation.cost_usd)
        except TimeoutError:
            raise LlmError(
                f"{model.label} did not answer within {limit_s:g} s", transient=True, is_timeout=True
            ) from None
        finally:
            await self.budget.settle(reservation)

    def _wait_s(self, attempt: int, error: LlmError) -> float:
        if error.retry_after_s is not None:
            return min(error.retry_after_s, _LONGEST_WAIT_S)
        # Random, so that calls that failed at the same time are not repeated at the same time.
        spread: float = 1 + self._chance.random() / 2
        wait: float = self._settings.backoff_s * 2**attempt * spread
        return min(wait, _LONGEST_WAIT_S)


def _size(call: Call) -> int:
    asked = f"{call.prompt}{json.dumps(call.schema)}" if call.schema is not None else call.prompt
    return len(asked.encode("utf-8", "surrogatepass"))


def _after(error: LlmError, attempt: int) -> LlmError:
    if attempt == 0:
        return error
    return LlmError(f"{error} (after {attempt + 1} attempts)", transient=error.transient)
