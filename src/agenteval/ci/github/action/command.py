"""A run of the command line as a step of a workflow: it does what the action does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.ci.github.action.context import Context
from agenteval.ci.github.action.inputs import Inputs
from agenteval.ci.github.action.main import run_step
from agenteval.ci.github.publish.publisher import CommentMode
from agenteval.core.authentic import CACHE_KEY
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.run.settings import Settings

_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")


@dataclass(frozen=True)
class GithubOptions:
    """What a run of the command line does on GitHub.

    Attributes:
        baseline: ``auto`` or the id of a workflow run; ``None`` if the settings name the baseline.
        baseline_artifact: name of the artifact that contains the report directory.
        comment: when to create a comment on the pull request.
        comment_id: distinguishes several comments.
        check_name: name of a check run; empty for none.
    """

    baseline: str | None = None
    baseline_artifact: str = "agenteval"
    comment: CommentMode = "never"
    comment_id: str = ""
    check_name: str = ""


def run_on_github(
    settings: Settings, out: Path, runs: int, options: GithubOptions, environment: Mapping[str, str]
) -> int:
    """Run suites in a job of a workflow, in the working directory.

    Args:
        settings: the settings of the run.
        out: the directory of the reports, in the workspace.
        runs: the number of runs, from 1.
        options: what the run does on GitHub.
        environment: environment variables of the step.

    Returns:
        The exit status of the gate.

    Raises:
        ConfigError: the program does not run in a workflow, or the run is to be resumed.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        raise ConfigError(
            Problem("--github needs a job of a GitHub workflow; GITHUB_ACTIONS is not 'true'", kind=Kind.GITHUB)
        )
    if settings.resume:
        raise ConfigError(
            Problem("--resume has no effect with --github, because user code can write the journal", kind=Kind.GITHUB)
        )
    inputs = Inputs(
        working_directory=str(Path.cwd()),
        github_token=next((environment[name] for name in _TOKENS if environment.get(name)), ""),
        baseline=options.baseline or "none",
        baseline_artifact=options.baseline_artifact,
        runs=runs,
        shard=settings.shard,
        cache_key=environment.get(CACHE_KEY, "").strip(),
        comment=options.comment,
        comment_id=options.comment_id,
        check_name=options.check_name,
        report_dir=str(out),
    )
    return run_step(environment, lambda: Context.of(environment, inputs, replace(settings, out=out)), out)
