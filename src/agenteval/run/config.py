"""What the caller asked for, and what ``agenteval.yaml`` says, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agenteval.core.confine import UserCodeRules
from agenteval.core.document import AllowedVariables, read_text
from agenteval.core.errors import ConfigError
from agenteval.core.files import BaseCommit, base_commit
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import name_secrets
from agenteval.core.text import display_path
from agenteval.core.validation import validate
from agenteval.core.yaml import parse_yaml
from agenteval.gate.policy import ComparePolicy
from agenteval.gate.verdict import FailOn, GatePolicy
from agenteval.results.masking import MAX_ANSWER_BYTES
from agenteval.suite.model import AgentSpec, MetricConfig, Suite

if TYPE_CHECKING:
    from agenteval.run.plan import Shard
    from agenteval.suite.evaluation import Criteria


@dataclass(frozen=True)
class Settings:
    """Settings of a run, a merge or a command on saved results; ``None`` means the default of the files.

    Attributes:
        suites: files, directories, or suites that the caller has built.
        out: the directory of the reports; ``None`` writes none.
        cases: names or ids of the cases to run; empty: all.
        failed_in: results of an earlier run; only its cases that did not pass run.
        wants_baseline: whether the caller asked for a baseline, also for one that is not found.
        prove: whether an improvement of a change is proven too, as on the base branch.
        is_whole: every case runs all its iterations, whatever ``gate.first`` says.
    """

    suites: tuple[Path | Suite, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None
    baseline: Path | None = None
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


_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*?\[\]!-]+$")]
#: The type of the key ``allow_env``.
AllowEnv = Annotated[
    list[_Name],
    Field(
        description="secret-like environment variables, and those of the runner and of agenteval, that ${VARIABLE} "
        "may insert into any text; * matches any text; for a change that is not merged the base branch must list "
        "them too"
    ),
]


class _VariableKeys(BaseModel):
    """The lists, in a file with other keys."""

    model_config = ConfigDict(extra="ignore")

    allow_env: AllowEnv = []
    secrets: Any = None


def read_allowed(path: Path | None) -> AllowedVariables:
    """Return the variables that files may use, from the configuration; its other keys are not checked.

    The names in ``secrets`` count as names of secrets from here on.

    Args:
        path: the configuration; ``None`` without one.

    Raises:
        ConfigError: the file is not YAML, or the list is invalid.
    """
    if path is None:
        return AllowedVariables()
    name = display_path(path)
    keys = _keys(read_text(path, name), name, path.parent)
    # A wrong list is reported where the whole configuration is read.
    listed = keys.secrets if isinstance(keys.secrets, list) else []
    name_secrets(pattern for pattern in listed if isinstance(pattern, str))
    commit = base_commit()
    return AllowedVariables(tuple(keys.allow_env), partial(_on_base, commit, path) if commit else None)


def _on_base(commit: BaseCommit, path: Path) -> tuple[str, ...]:
    return tuple(_keys(commit.read(path), f"{display_path(path)} on the base branch", path.parent).allow_env)


def _keys(text: str, name: str, directory: Path) -> _VariableKeys:
    # Variables are not replaced: the list decides about them.
    document = parse_yaml(text, name, directory, environment={}, unset=[])
    if not isinstance(document.data, dict):
        return _VariableKeys()
    entry, problems = validate(_VariableKeys, document.data, document)
    if entry is None:
        raise ConfigError(problems)
    return entry


CONFIG_FILE = "agenteval.yaml"

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
