"""The configuration as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.compare.gate import GatePolicy
from agenteval.compare.policy import ComparePolicy
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.llm.spec import ModelSpec
from agenteval.core.process.confinement import UserCodeRules
from agenteval.results.shortening import MAX_ANSWER_BYTES
from agenteval.run.config.ignored import DEFAULT_IGNORED
from agenteval.suite.model import AgentSpec, MetricConfig

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Criteria

CONFIG_FILE = "agenteval.yaml"

DEFAULT_AGENT = "default"

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True)
class RunSetting:
    """A setting of the run as a whole that a file changes.

    Attributes:
        value: can be compared with the value of another file.
        line: where it is written.
    """

    value: Any = field(repr=False)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class AddedMetric:
    """A metric that the configuration adds to suites.

    Attributes:
        metric: its configuration.
        suites: patterns of paths or names of suites; empty for all suites.
        over_iterations: whether one score covers the answers of all iterations.
    """

    metric: MetricConfig
    suites: tuple[str, ...] = ()
    over_iterations: bool = False

    def applies_to(self, path: str, name: str) -> bool:
        """Return whether a suite gets the metric; ``**/`` at the start of a pattern matches any folder or none."""
        patterns = [form for text in self.suites for form in (text, text.removeprefix("**/"))]
        return not patterns or any(fnmatchcase(path, text) or fnmatchcase(name, text) for text in patterns)


@dataclass(frozen=True)
class Config:
    """The content of ``agenteval.yaml``, or the defaults.

    Attributes:
        name: the file, for messages; empty for the defaults.
        ignore: patterns of git for files that cannot change the verdict on a pull request.
        of_run: the settings of the run as a whole that differ from the defaults, by key.
        written: the value of every key that is no agent, metric or model, by its dotted path.
    """

    name: str = ""
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    tools: Mapping[str, AgentSpec] = field(default_factory=dict)
    judge: ModelSpec | None = None
    metrics: tuple[AddedMetric, ...] = ()
    embeddings: ModelSpec | None = None
    criteria: Criteria | None = None
    personas: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    iterations: int | None = None
    concurrency: int | None = None
    case_timeout_s: float | None = None
    time_limit_s: float | None = None
    user_code: UserCodeRules = field(default_factory=UserCodeRules)
    max_answer_bytes: int = MAX_ANSWER_BYTES
    gate: GatePolicy = field(default_factory=GatePolicy)
    compare: ComparePolicy = field(default_factory=ComparePolicy)
    ignore: tuple[str, ...] = DEFAULT_IGNORED
    comment_template: Path | None = None
    summary_template: Path | None = None
    reports: tuple[str, ...] = ()
    llm: LlmSettings = field(default_factory=LlmSettings)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    of_run: Mapping[str, RunSetting] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict, repr=False)
