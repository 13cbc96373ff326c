"""What the caller asked for, and what ``agenteval.yaml`` says, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agenteval.core.confine import UserCodeRules
from agenteval.core.document import read_text
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import add_listed_secrets
from agenteval.core.text import display_path
from agenteval.core.yaml import parse_yaml
from agenteval.gate.values import ComparePolicy
from agenteval.gate.verdict import FailOn, GatePolicy
from agenteval.results.masking import MAX_ANSWER_BYTES
from agenteval.results.model import Results
from agenteval.suite.model import AgentSpec, MetricConfig, Suite

if TYPE_CHECKING:
    from agenteval.run.plan import Shard
    from agenteval.suite.evaluation import Criteria


@dataclass(frozen=True)
class Settings:
    """Settings of a run, a merge or a command on saved results; ``None`` means the default of the files.

    Attributes:
        suites: files, directories, or suites that the caller has built.
        baseline: the run to compare with: its file, or its results.
        out: the directory of the reports; ``None`` writes none.
        failed_in: results of an earlier run; only its cases that did not pass run.
        wants_baseline: whether the caller asked for a baseline, also for one that is not found.
        prove: whether an improvement of a change is proven too, as on the base branch.
        is_whole: every case runs all its iterations, whatever ``gate.first`` says.
    """

    suites: tuple[Path | Suite, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None
    baseline: Path | Results | None = None
    out: Path | None = Path("agenteval-report")
    metrics: tuple[MetricConfig, ...] = ()
    iterations: int | None = None
    concurrency: int | None = None
    filter: str | None = None
    tags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    failed_in: Path | None = None
    shard: Shard | None = None
    fail_on: frozenset[FailOn] | None = None
    wants_baseline: bool = False
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    time_limit_s: float | None = None
    seed: int | None = None
    prove: bool = False
    is_whole: bool = False
    resume: bool = False
    use_cache: bool = True
    quiet: bool = False
    verbosity: int = 0
    traces: Path | None = None
    keep_going: bool = False
    control: str | None = None
    history: Path | None = None


class _VariableKeys(BaseModel):
    model_config = ConfigDict(extra="ignore")

    pass_env: list[str] = []
    secrets: list[str] = []


def read_pass_env(path: Path | None) -> tuple[str, ...]:
    """Return which variables files may use and user code gets; the other keys of the configuration are not checked.

    The values of the variables that ``secrets`` lists are masked from here on.

    Args:
        path: the configuration; ``None`` without one. Reading the whole of it reports wrong lists.
    """
    if path is None:
        return ()
    name = display_path(path)
    # Variables are not replaced: the list decides about them.
    document = parse_yaml(read_text(path, name), name, path.parent, environment={}, unset=[])
    try:
        keys = _VariableKeys.model_validate(document.data or {})
    except ValidationError:
        return ()
    add_listed_secrets(keys.secrets)
    return tuple(keys.pass_env)


CONFIG_FILE = "agenteval.yaml"
CONFIG_FILES = (CONFIG_FILE, "agenteval.yml")

DEFAULT_AGENT = "default"

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True)
class AddedMetric:
    """A metric that the configuration adds to suites.

    Attributes:
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
        of_run: the settings of the run as a whole that differ from the defaults, by key; ``lines`` are theirs.
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
    comment_template: Path | None = None
    summary_template: Path | None = None
    reports: tuple[str, ...] = ()
    llm: LlmSettings = field(default_factory=LlmSettings)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    of_run: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lines: Mapping[str, int | None] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict, repr=False)
