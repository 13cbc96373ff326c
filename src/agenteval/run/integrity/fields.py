"""Says who decides each field that a change can write: the base commit, the change, or that it does not matter.

A test compares these tables with the models. A new field needs an entry here, and the code that the entry promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Standing:
    """Who decides the value of a field in a run that a base commit judges.

    Attributes:
        by: ``base``: the value of the base commit counts. ``change``: that of the change, and the list shows it.
            ``either``: that of the change, which cannot change a verdict.
        why: the reason, if the base commit does not decide.
    """

    by: Literal["base", "change", "either"]
    why: str = ""


BASE = Standing("base")
_TESTED = Standing("change", "it defines the agent, which the run evaluates")
_LABEL = Standing("either", "it is a name or a place for people")
_SPEED = Standing("either", "it changes how fast a run is, not what is asked and how it is scored")
_PROGRAM = Standing("either", "files cannot contain it: a program sets it, and such a run has no base commit")

#: ``agenteval.yaml``, by the dotted path of the key.
CONFIGURATION: Mapping[str, Standing] = {
    "agents": Standing("change", "by key, as in `AGENT`"),
    "tools": Standing("change", "by key, as in `AGENT`"),
    "judge": BASE,
    "embeddings": BASE,
    "metrics": BASE,
    "criteria": BASE,
    "personas": BASE,
    "tags": BASE,
    "iterations": BASE,
    "concurrency": _SPEED,
    "case_timeout": BASE,
    "time_limit": Standing("either", "a run that it ends is unproven"),
    "pass_env": Standing("change", "it adds variables to the agent and to graders, and changes no rule"),
    "secrets": Standing("either", "it only masks more"),
    "allow_env": Standing("either", "a variable that the base branch does not list stays forbidden to a change"),
    "limits.memory_mb": BASE,
    "limits.cpu_s": BASE,
    "max_answer_bytes": Standing("either", "metrics read the whole answer"),
    "templates.comment": BASE,
    "templates.summary": BASE,
    "reports": Standing("either", "they are written after the decision, into separate files"),
    **{
        f"gate.{name}": BASE
        for name in (
            "fail_on",
            "max_error_rate",
            "policy",
            "confirm",
            "max_confirmation",
            "settings",
            "tolerance",
            "require",
            "window",
            "min_effect",
            "max_cases",
            "head_to_head_calls",
            "metrics",
            "deterministic",
            "long_look",
            "on_low_control",
            "staged",
            "strict",
            "must_pass",
            "quarantine",
            "on_unchecked",
            "on_unjudged",
            "ignore",
            "min_pass_rate",
            "max_latency_increase",
            "max_cost_increase",
        )
    },
    "llm.max_calls": BASE,
    "llm.max_cost_usd": BASE,
    "llm.cache": Standing("either", "a reply in it is used only if this repository's key has sealed it"),
    "llm.cache_agents": BASE,
    "llm.concurrency": _SPEED,
    "llm.requests_per_minute": _SPEED,
    "llm.retries": BASE,
    "llm.backoff": _SPEED,
    "llm.timeout": BASE,
}

#: The definition of an agent or a tool, by the attribute of `AgentSpec`. The interpreter is an option; that of
#: graders is the base commit's.
AGENT: Mapping[str, Standing] = {
    "kind": _TESTED,
    "target": _TESTED,
    "directory": _TESTED,
    "timeout_s": BASE,
    "concurrency": _SPEED,
    "retries": BASE,
    "config": _TESTED,
    "env": _TESTED,
    "options": _TESTED,
    "where": _LABEL,
    "function": _PROGRAM,
    "control": BASE,
}

#: A suite, by the attribute of `Suite`, to which all formats convert their files.
SUITE: Mapping[str, Standing] = {
    "path": Standing("either", "cases are paired by their content too, and keep the rules of the suite they were in"),
    "name": _LABEL,
    "format": _LABEL,
    "cases": Standing("change", "case by case: removed, renamed, edited and new ones are listed"),
    "root": _TESTED,
    "agent": _TESTED,
    "fallback_agent": _TESTED,
    "concurrency": _SPEED,
    "iterations": BASE,
    "turn_timeout_s": BASE,
    "retrieval_tools": BASE,
    "metrics": BASE,
    "aggregate": BASE,
    "evaluation": BASE,
    "warnings": _LABEL,
    "secrets": Standing("either", "it only masks more"),
}

#: A case that the base commit has too, by the attribute of `Case`.
CASE: Mapping[str, Standing] = {
    "id": Standing("change", "a renamed case is listed; the patterns of the base commit also match its old id"),
    "name": Standing("either", "the patterns of the base commit also match its old name"),
    "turns": BASE,
    "tags": BASE,
    "cluster": BASE,
    "line": _LABEL,
    "iterations": BASE,
    "metrics": BASE,
    "strict": BASE,
    "target": _TESTED,
    "persona": BASE,
    "aggregate": BASE,
}

_WORKFLOW = Standing("change", "the workflow file contains it")
_FILE_OF_BASE = Standing("base", "the workflow file names a file, and that of the base commit is read")

#: The inputs of the action. All are in the workflow file, and its changes are listed.
INPUTS: Mapping[str, Standing] = {
    "suite": _FILE_OF_BASE,
    "config": _FILE_OF_BASE,
    "comment-template": _FILE_OF_BASE,
    "summary-template": _FILE_OF_BASE,
    **dict.fromkeys(
        (
            "mode",
            "working-directory",
            "setup",
            "github-token",
            "baseline",
            "baseline-artifact",
            "baseline-branch",
            "on-missing-baseline",
            "fail-on",
            "runs",
            "iterations",
            "concurrency",
            "filter",
            "shard",
            "max-llm-calls",
            "max-cost-usd",
            "cache-key",
            "cache-dir",
            "comment",
            "comment-id",
            "check-name",
            "fork-results",
            "matrix",
            "check-run-id",
            "annotations",
            "report-dir",
        ),
        _WORKFLOW,
    ),
}
