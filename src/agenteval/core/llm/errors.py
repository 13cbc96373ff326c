"""Errors of language models."""

from __future__ import annotations

from typing import Literal

from agenteval.core.errors import AgentEvalError


class LlmError(AgentEvalError):
    """A model could not be called, or its provider refused the request.

    Args:
        message: the failure, without secrets.
        transient: whether a retry may succeed.
        retry_after_s: the wait that the provider requested, in seconds.
    """

    def __init__(self, message: str, *, transient: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_s = retry_after_s


class OptionRefusedError(LlmError):
    """The provider does not accept an option; the next attempt omits it."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message, transient=True)
        self.option = option


class NotAskedError(AgentEvalError):
    """A model was not called because of a limit; metrics that need it are skipped.

    Args:
        message: which limit stopped the call.
        cause: the run's budget, the suite's limit of calls, or the suite's sample.
        limit: the same with its size, as a few words: ``limit of 50 calls``.
    """

    def __init__(self, message: str, cause: Literal["budget", "limit", "sample"], limit: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.limit = limit


class BudgetSpentError(NotAskedError):
    """``max_llm_calls`` or ``max_cost_usd`` of the run is exhausted."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message, "budget", limit)
