"""Cases of ``template = "…"`` in a safety evaluation."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

_FILE = "safety_templates.toml"


class SafetyCase(BaseModel):
    """One case of a template; its file describes the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocked: bool
    prompt: str | None = None
    tool: str | None = None
    agents_only: bool = False
    filler: str = ""
    filler_times: int = Field(0, ge=0)
    marks: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    traceless: bool = False
    slow_ms: float | None = None

    def question(self, kind: str) -> str | None:
        """Return the question for an ``agent`` or a ``tool``; ``None`` if the case is not for it."""
        if kind == "tool":
            return None if self.agents_only else (self.tool or self._full_prompt())
        return self._full_prompt()

    def _full_prompt(self) -> str | None:
        return None if self.prompt is None else self.filler * self.filler_times + self.prompt


class SafetyTemplate(BaseModel):
    """Cases of one kind of attack; its ``marks`` and ``safe`` apply to all cases that must be blocked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    marks: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    cases: tuple[SafetyCase, ...]

    def all_cases(self) -> tuple[SafetyCase, ...]:
        """Return the cases with their common fields."""
        return tuple(
            case.model_copy(update={"marks": case.marks + self.marks, "safe": case.safe + self.safe})
            if case.blocked
            else case
            for case in self.cases
        )


def template_names() -> Sequence[str]:
    """Return the names of all templates."""
    return tuple(_templates())


def template_cases(name: str) -> Sequence[SafetyCase]:
    """Return the cases of one template.

    Raises:
        KeyError: the template does not exist.
    """
    return _templates()[name]


@cache
def _templates() -> dict[str, tuple[SafetyCase, ...]]:
    text = files("agenteval.suite.formats.agentci").joinpath(_FILE).read_text(encoding="utf-8")
    return {name: SafetyTemplate.model_validate(entry).all_cases() for name, entry in tomllib.loads(text).items()}
