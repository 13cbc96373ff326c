"""Checks, before anything is paid for, that the judge of HoloDeck suites that name none answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.gateway import Gateway
from agenteval.core.llm.spec import UNNAMED_JUDGE
from agenteval.suite.model import MetricConfig

# Names of metrics that a message lists.
_MOST_NAMED = 3

_FIX = (
    "name one, `evaluations: {model: {provider: openai, name: gpt-6-luna}}`, and set OPENAI_API_KEY in the "
    "environment of the step"
)


async def check_unnamed_judge(configs: Iterable[MetricConfig], gateway: Gateway) -> None:
    """Try the default judge once, if metrics need it.

    Args:
        configs: the metrics of the run.
        gateway: makes the calls of the run.

    Raises:
        ConfigError: it does not answer; the error contains a problem for each metric.
    """
    # The same model, if a suite names it, is another object.
    judged = [config for config in configs if config.options.get("model") is UNNAMED_JUDGE]
    # Without calls, judges are skipped.
    if not judged or gateway.budget.limits.max_calls == 0:
        return
    # Imported here: most runs have another judge, or none.
    from agenteval.core.llm.providers import reachable
    from agenteval.core.llm.providers.ollama import OllamaProvider

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
