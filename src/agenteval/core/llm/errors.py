"""Why a language model did not answer."""

from __future__ import annotations

from agenteval.core.errors import AgentEvalError


class LlmError(AgentEvalError):
    """A model could not be asked, or its provider refused.

    Args:
        message: what happened, without any secret.
        transient: another attempt may succeed.
        retry_after_s: how long the provider asked to wait.
    """

    def __init__(self, message: str, *, transient: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_s = retry_after_s


class OptionRefusedError(LlmError):
    """The provider does not take an option; the next attempt goes without it."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message, transient=True)
        self.option = option


class BudgetSpentError(AgentEvalError):
    """``max_llm_calls`` or ``max_cost_usd`` is used up; what is not judged yet is skipped."""
