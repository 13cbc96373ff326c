"""The commands for GitHub, ``publish`` and ``action``, and the options of ``run --github``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.arguments import add_command, path, positive
from agenteval.core.errors import ConfigError, Kind, Problem

if TYPE_CHECKING:
    from agenteval.ci.github.action.command import GithubOptions

_COMMENT = ("always", "changes", "failures", "never")


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_publish(commands)
    action = add_command(
        commands, "action", _action, "run the container action: read INPUT_* and write GitHub's files"
    )
    action.add_argument("--clean-up", action="store_true", help="remove the 'in progress' note of a killed run")


def add_github_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run`` for a job of a workflow."""
    option = parser.add_argument_group("in a job of a GitHub workflow").add_argument
    option(
        "--github",
        action="store_true",
        help="do what the action does: outputs, job summary, annotations, and the commit of the event; "
        "GITHUB_TOKEN is the token",
    )
    option(
        "--comment",
        choices=_COMMENT,
        help="with --github: when to comment on the pull request; default: never",
    )
    option("--comment-id", metavar="ID", help="with --github: distinguishes several comments on one pull request")
    option("--check-name", metavar="NAME", help="with --github: name of a check run to create; default: no check run")
    option(
        "--baseline-artifact",
        metavar="NAME",
        help="with --baseline auto: name of the artifact with the report directory; default: agenteval",
    )


def github_options(arguments: argparse.Namespace) -> GithubOptions | None:
    """Return what a run does on GitHub; ``None`` without ``--github``.

    Raises:
        ConfigError: an option needs ``--github``.
    """
    given = {
        name: value
        for name in ("comment", "comment_id", "check_name", "baseline_artifact")
        if (value := getattr(arguments, name)) is not None
    }
    if is_searched(arguments.baseline):
        given["baseline"] = arguments.baseline
    if not arguments.github:
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ConfigError(Problem(f"{names} needs --github, in a job of a GitHub workflow", kind=Kind.OPTION))
        return None
    from agenteval.ci.github.action.command import GithubOptions

    return GithubOptions(**given)


def is_searched(baseline: str | None) -> bool:
    """Return whether a baseline is an artifact to search on GitHub, not a path."""
    return baseline is not None and not Path(baseline).exists() and (baseline == "auto" or baseline.isdigit())


def _add_publish(commands: Any) -> None:
    parser = add_command(commands, "publish", _publish, "post a results file to GitHub as a comment and a check run")
    parser.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    option = parser.add_argument
    option("--dry-run", action="store_true", help="print every API call with its body; make none")
    option("--repository", metavar="OWNER/NAME", help="repository; default: from the results")
    option("--pull-request", metavar="N", type=positive, help="pull request to comment on; default: from the results")
    option("--commit", metavar="SHA", help="commit of the check run; default: from the results")
    option(
        "--comment",
        choices=_COMMENT,
        default="always",
        help="when to comment; default: %(default)s",
    )
    option("--comment-id", metavar="ID", default="", help="distinguishes several comments on one pull request")
    option("--check-name", metavar="NAME", default="", help="name of a check run to create; default: no check run")
    option("--no-annotations", action="store_true", help="create the check run without annotations")
    option("--config", metavar="FILE", help="agenteval.yaml with the gate's settings")


def _publish(arguments: argparse.Namespace) -> int:
    from agenteval.ci.github.publish.publisher import PublishOptions
    from agenteval.ci.github.publish.saved_results import Target, dry_run, publish_file
    from agenteval.core.masking import mask
    from agenteval.core.text.escape import terminal

    options = PublishOptions(
        arguments.comment, arguments.comment_id, arguments.check_name, not arguments.no_annotations
    )
    target = Target(arguments.repository, arguments.pull_request, arguments.commit)
    config = path(arguments.config)
    publish = dry_run if arguments.dry_run else publish_file
    for text in publish(Path(arguments.results), target, options, config, os.environ):
        print(terminal(mask(text), multiline=True))
    return 0


def _action(arguments: argparse.Namespace) -> int:
    from agenteval.ci.github.action import main as action

    return action.clean_up(os.environ) if arguments.clean_up else action.main(os.environ)
