"""Errors of language models."""

from __future__ import annotations

from agenteval.core.errors import AgentEvalError


class LlmError(AgentEvalError):
    """A model could not be called, or its provider refused.

    Args:
        message: what happened; contains no secret.
        transient: whether another attempt may succeed.
        retry_after_s: the wait in seconds that the provider asked for.
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


class BudgetSpentError(AgentEvalError):
    """``max_llm_calls`` or ``max_cost_usd`` is used up; remaining judgements are skipped."""
