"""A CI host for tests of base commits."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.core.errors import AgentEvalError
from agenteval.run.base_commit import ControlRule
from agenteval.run.git import Remote


@dataclass(frozen=True)
class Host:
    """A CI host that knows what the test tells it.

    Attributes:
        rule: how the base commit is found.
        remote: the repository to fetch from.
        base: the merge base of any two commits, if the host knows it.
    """

    rule: ControlRule
    remote: Remote | None = None
    base: str | None = None

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base."""
        if self.base is None:
            raise AgentEvalError(f"{one} and {other} are unknown")
        return self.base
