"""What the caller asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.gate.verdict import FailOn
from agenteval.suite.model import AgentSpec, MetricConfig, Suite

if TYPE_CHECKING:
    from agenteval.run.shard import Shard


@dataclass(frozen=True)
class Settings:
    """Settings of a run, a merge or a command on saved results; ``None`` means the default of the files.

    Attributes:
        suites: files, directories, or suites that the caller has built.
        out: the directory of the reports; ``None`` writes none.
        cases: names or ids of the cases to run; empty: all.
        failed_in: results of an earlier run; only its cases that did not pass run.
        needs_baseline: whether a run that is compared with nothing fails.
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
    needs_baseline: bool = False
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
    comment_template: Path | None = None
    summary_template: Path | None = None
