"""The values of ``agenteval.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import GatePolicy
from agenteval.compare.policy import ComparePolicy
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.llm.spec import ModelSpec
from agenteval.suite.model import AgentSpec, MetricConfig

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Criteria

CONFIG_FILE = "agenteval.yaml"

DEFAULT_AGENT = "default"

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True)
class ProcessLimits:
    """What one process of users' code may use; ``None`` is no limit.

    Attributes:
        memory_mb: data in memory, in MB (10^6 bytes).
        cpu_s: seconds of processor time.
    """

    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class AddedMetric:
    """A metric that is added to suites.

    Attributes:
        metric: its configuration.
        suites: patterns of the suites that get it, by path or name; empty is all.
        over_iterations: it scores the answers of all iterations together.
    """

    metric: MetricConfig
    suites: tuple[str, ...] = ()
    over_iterations: bool = False

    def applies_to(self, path: str, name: str) -> bool:
        """Whether a suite gets it; ``**/`` at the start of a pattern stands for any folder or none."""
        patterns = [form for text in self.suites for form in (text, text.removeprefix("**/"))]
        return not patterns or any(fnmatchcase(path, text) or fnmatchcase(name, text) for text in patterns)


@dataclass(frozen=True)
class Config:
    """What ``agenteval.yaml`` says, or the defaults if there is none."""

    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    tools: Mapping[str, AgentSpec] = field(default_factory=dict)
    judge: ModelSpec | None = None
    metrics: tuple[AddedMetric, ...] = ()
    embeddings: ModelSpec | None = None
    criteria: Criteria | None = None
    personas: Mapping[str, Sequence[str]] = field(default_factory=dict)
    iterations: int | None = None
    concurrency: int | None = None
    case_timeout_s: float | None = None
    time_limit_s: float | None = None
    pass_env: tuple[str, ...] | None = None
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    gate: GatePolicy = field(default_factory=GatePolicy)
    compare: ComparePolicy = field(default_factory=ComparePolicy)
    comment_template: Path | None = None
    summary_template: Path | None = None
    reports: tuple[str, ...] = ()
    llm: LlmSettings = field(default_factory=LlmSettings)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
