"""Resources that the metrics of a run share: models, graders, embeddings, and samples of judges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agenteval.core.confine import UserCodeRules, under_rules
from agenteval.core.errors import (
    AgentError,
    AgentImportError,
    ConfigError,
    Kind,
    Problem,
    UserCodeError,
    raise_failures,
)
from agenteval.core.llm.gateway import Gateway
from agenteval.core.llm.models import UNNAMED_JUDGE, ModelSpec
from agenteval.core.records import dataclass
from agenteval.core.text import working_directory_beside
from agenteval.results.model import RunUsage, UsedPlugin
from agenteval.suite.model import AgentSpec, MetricConfig, Place

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agenteval.agents.worker.pool import WorkerPool
    from agenteval.core.llm.embeddings import Embeddings
    from agenteval.metrics.judge_quota import Judgements


_CHECK = "agenteval.grader:check"
# Time limit for importing a grader; a limit of an evaluation covers its calls only.
IMPORT_LIMIT_S = 120.0


@dataclass(frozen=True)
class _Expected:
    """A grader that will be called, with the function that checks its existence."""

    where: Place
    called: str
    check: str
    arguments: list[Any]


class GraderPool:
    """The graders of the suites of one configuration.

    Args:
        interpreters: the Python interpreter by directory, for directories whose agent names one.
        rules: variables and limits of their processes; ``None`` for those in force.
    """

    def __init__(
        self,
        interpreters: Mapping[str, str] | None = None,
        concurrency: int = 8,
        rules: UserCodeRules | None = None,
    ) -> None:
        self._interpreters = interpreters or {}
        self._concurrency = concurrency
        self._rules = rules
        self._expected: dict[tuple[str, str, str, str], _Expected] = {}
        self._plugins: dict[str, str] = {}
        self._pools: dict[tuple[str, str], WorkerPool] = {}

    @property
    def plugins(self) -> list[UsedPlugin]:
        """The installed packages whose metrics are used; complete after the pool has started."""
        return [UsedPlugin(name=name, version=version) for name, version in sorted(self._plugins.items())]

    def expect(
        self,
        where: Place,
        reference: str,
        called: str = "grader",
        *,
        check: str = _CHECK,
        options: Sequence[Any] = (),
    ) -> None:
        """Register a grader that will be called; ``start`` checks that it exists.

        Args:
            where: the metric's place; the module is imported from its directory.
            reference: ``module:callable``.
            called: the key of the suite that names the grader.
            check: function that runs in the worker and imports the grader; its first argument is
                ``reference``.
            options: the other arguments of ``check``, as JSON.
        """
        key = (*_home(where), reference, json.dumps(options, sort_keys=True, default=str))
        self._expected.setdefault(key, _Expected(where, called, check, [reference, *options]))

    async def start(self) -> None:
        """Import every expected grader."""
        checks = (self._failure(expected) for expected in self._expected.values())
        raise_failures([failure for failure in await asyncio.gather(*checks) if failure is not None])

    async def call(self, where: Place, function: str, arguments: list[Any]) -> Mapping[str, Any]:
        """Call a built-in function that calls a grader."""
        found: Mapping[str, Any] = await self._call(where, function, arguments)
        return found

    async def close(self) -> None:
        """Stop the worker processes."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def _failure(self, expected: _Expected) -> ConfigError | UserCodeError | None:
        try:
            async with asyncio.timeout(IMPORT_LIMIT_S):
                failure = await self._import_failure(expected)
                if failure is not None:
                    kind, why = failure
                    return kind(_unusable(expected, why))
                found = await self._call(expected.where, expected.check, expected.arguments)
        except TimeoutError:
            why = f"importing it took longer than {IMPORT_LIMIT_S:g} s; load large data when it is first called"
            return UserCodeError(_unusable(expected, why))
        except AgentImportError as error:
            return UserCodeError(_unusable(expected, str(error)))
        except AgentError as error:
            return ConfigError(_unusable(expected, str(error)))
        if isinstance(found, Mapping) and "name" in found:
            self._plugins[str(found["name"])] = str(found.get("version"))
        return None

    async def _import_failure(self, expected: _Expected) -> tuple[type[ConfigError | UserCodeError], str] | None:
        if expected.check != _CHECK:
            return None
        with self._under_rules():
            return await self._pool(expected.where).import_failure(expected.arguments[0])

    async def _call(self, where: Place, function: str, arguments: list[Any]) -> Any:
        with self._under_rules():
            return await self._pool(where).call(function, arguments)

    def _under_rules(self) -> AbstractContextManager[None]:
        return nullcontext() if self._rules is None else under_rules(self._rules)

    def _pool(self, where: Place) -> WorkerPool:
        directory, home = where.directory, _home(where)
        pool = self._pools.get(home)
        if pool is None:
            # Imported here: most runs call no grader.
            from agenteval.agents.worker.pool import WorkerPool

            interpreter = self._interpreters.get(directory)
            options = {"interpreter": interpreter} if interpreter else {}
            spec = AgentSpec(
                kind="python",
                target="",
                directory=directory,
                env=where.variables,
                options=options,
                where="graders",
            )
            # For the base commit's files, the place of the working directory there.
            further = working_directory_beside(Path(directory), where.file)
            pool = self._pools[home] = WorkerPool(
                spec, self._concurrency, imported_from=str(further) if further else None, judges=True
            )
        return pool


def _home(where: Place) -> tuple[str, str]:
    return where.directory, json.dumps(dict(where.variables), sort_keys=True)


def _unusable(expected: _Expected, why: str) -> Problem:
    where, called = expected.where, expected.called
    message = f"the {called} {expected.arguments[0]!r} cannot be used: {why} (looked in {where.directory})"
    return Problem(
        message, file=where.file, line=where.line, path=called, kind=Kind.USER_CODE, mark=str(expected.arguments[0])
    )


Reply = TypeVar("Reply", bound="BaseModel")


@dataclass(frozen=True)
class Resources:
    """The resources that the metrics of the suites of one configuration share.

    Attributes:
        judge: the judge for suites that do not name one, if they support a default judge.
        remembers: whether suites may cache and reuse judgements.
        seed: the random seed of metrics; ``None`` gives the same values in every run.
    """

    gateway: Gateway
    graders: GraderPool
    judge: ModelSpec | None = None
    embedder: ModelSpec | None = None
    remembers: bool = True
    seed: int | None = None

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embeddings of texts, with a cache."""
        from agenteval.core.llm.embeddings import Embeddings

        return Embeddings(self.gateway, self.embedder)

    @cached_property
    def judgements(self) -> Judgements:
        """The quotas and cached judgements of trace judges."""
        from agenteval.metrics.judge_quota import Judgements

        return Judgements(self.remembers)

    @property
    def judged(self) -> Mapping[str, int]:
        """Return the number of counted judge answers so far, by suite."""
        return self.judgements.answered if "judgements" in self.__dict__ else {}

    async def ask(self, prompt: str, reply: type[Reply], *, sample: int = 0) -> Reply:
        """Send a prompt to the judge model; cache, budget, limits and retries are those of built-in judges.

        Args:
            reply: a pydantic model; the judge is asked for JSON that follows its schema.
            sample: the iteration; cached replies are reused for the same iteration only.

        Raises:
            MetricError: no judge is configured, or its reply does not follow the schema.
            LlmError: the provider refused the request, or all attempts failed.
            BudgetSpentError: the budget of the run allows no further call; the metric is skipped.
        """
        from agenteval.core.llm.calls import Call
        from agenteval.metrics.base import MetricError
        from agenteval.metrics.judge_replies import read_reply

        if self.judge is None:
            raise MetricError("no judge model is configured; set `judge` in agenteval.yaml")
        call = Call(self.judge, prompt, schema=reply.model_json_schema(), schema_name=reply.__name__, sample=sample)
        completion = await self.gateway.complete(call, lambda answer: read_reply(answer.text, reply))
        return read_reply(completion.text, reply)


@dataclass(frozen=True)
class RunResources:
    """The resources of a run."""

    gateway: Gateway
    parts: Sequence[Resources]

    @property
    def asked(self) -> RunUsage:
        """The usage of all models so far: judges and model agents."""
        return RunUsage(
            input_tokens=self.gateway.input_tokens,
            output_tokens=self.gateway.output_tokens,
            llm_calls=self.gateway.budget.calls,
            cost_usd=self.gateway.budget.cost_usd,
            cached_calls=self.gateway.cached_calls,
            saved_usd=self.gateway.saved_usd,
        )

    @property
    def judged(self) -> Mapping[str, int]:
        """Return the number of counted judge answers so far, by suite."""
        found: dict[str, int] = {}
        for part in self.parts:
            # Each suite is counted by one part; the others have the number of the interrupted run.
            found |= {suite: max(number, found.get(suite, 0)) for suite, number in part.judged.items()}
        return found

    @property
    def plugins(self) -> tuple[UsedPlugin, ...]:
        """The installed packages whose metrics are used; complete after the start."""
        found = {plugin.name: plugin for part in self.parts for plugin in part.graders.plugins}
        return tuple(found[name] for name in sorted(found))

    def record_spend(self, spent: RunUsage, judged: Mapping[str, int]) -> None:
        """Count the usage of an earlier part of the run: of models, and of each suite's judge limit."""
        gateway = self.gateway
        gateway.input_tokens += spent.input_tokens
        gateway.output_tokens += spent.output_tokens
        gateway.cached_calls += spent.cached_calls
        gateway.saved_usd += spent.saved_usd
        gateway.budget.calls += spent.llm_calls
        gateway.budget.cost_usd += spent.cost_usd
        if judged:
            for part in self.parts:
                part.judgements.record_spend(judged)

    async def start(self) -> None:
        """Check that the registered resources exist."""
        failures: list[ConfigError | UserCodeError] = []
        for part in self.parts:
            try:
                await part.graders.start()
            except (ConfigError, UserCodeError) as error:
                failures.append(error)
        raise_failures(failures)

    async def close(self) -> None:
        """Close connections and processes."""
        await asyncio.gather(self.gateway.close(), *(part.graders.close() for part in self.parts))


# Names of metrics that a message lists.
_MOST_NAMED = 3

_FIX = (
    "name one, `evaluations: {model: {provider: openai, name: gpt-6-luna}}`, and set OPENAI_API_KEY in the "
    "environment of the step"
)


async def check_unnamed_judge(configs: Iterable[MetricConfig], gateway: Gateway) -> None:
    """Try the default judge once, if metrics need it."""
    # The same model, if a suite names it, is another object.
    judged = [config for config in configs if config.options.get("model") is UNNAMED_JUDGE]
    # Without calls, judges are skipped.
    if not judged or gateway.budget.limits.max_calls == 0:
        return
    # Imported here: most runs have another judge, or none.
    from agenteval.core.llm.models import reachable
    from agenteval.core.llm.ollama import OllamaProvider

    provider = OllamaProvider(reachable(UNNAMED_JUDGE))
    try:
        why = await provider.missing()
    finally:
        await provider.close()
    if why:
        raise ConfigError(_problems(judged, why))


def _problems(judged: Sequence[MetricConfig], why: str) -> Iterator[Problem]:
    names = list(dict.fromkeys(config.id for config in judged))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    whose = f"the metric {names[0]} needs" if len(names) == 1 else f"{', '.join(names[:_MOST_NAMED])}{more} need"
    message = (
        f"{whose} a judge model, and none is named; {_FIX}; "
        f"HoloDeck's default, {UNNAMED_JUDGE.label}, cannot be asked: {why}"
    )
    for config in judged:
        yield Problem(message, file=config.where.file, line=config.where.line, kind=Kind.JUDGE, mark=config.id)
