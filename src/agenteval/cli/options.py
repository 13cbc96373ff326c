"""What the options of commands have in common, and the commands for GitHub."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from agenteval.core.errors import ConfigError, Kind, Problem

if TYPE_CHECKING:
    from agenteval.gate.verdict import FailOn
    from agenteval.github.action import GithubOptions


_CHOICE = re.compile(
    r"(?:argument (?P<of>.+?): )?invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)$", re.DOTALL
)
_ARGUMENT = re.compile(r"argument (?P<of>.+?): (?P<problem>.*)", re.DOTALL)
#: The name of the command in messages of argparse.
COMMAND = "COMMAND"


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, with the command or value that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Raise a mistake in the command line.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(Problem(f"{_explained(message)}; see `{self.prog} --help`", kind=Kind.OPTION))


def _explained(message: str) -> str:
    from agenteval.core.text import choices

    if message.endswith(f"required: {COMMAND}"):
        return "no command is given"
    wrong = _CHOICE.match(message)
    if wrong is not None:
        names = re.findall(r"[\w.-]+", wrong["known"])
        if wrong["of"] in {None, COMMAND}:
            return f"no command {wrong['given']!r}{choices(wrong['given'], names, 'commands')}"
        return f"{wrong['of']}: {wrong['given']!r} is not allowed{choices(wrong['given'], names)}"
    argument = _ARGUMENT.match(message)
    return f"{argument['of']}: {argument['problem']}" if argument is not None else message


class Choices:
    """The values of an option from the registries, which are imported when they are needed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in tuple(self._names())


def add_command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """Add a command to the parser; the text is its help, and as a sentence its description."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=function, parser=parser)
    return parser


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """Add the option for how much of the result is printed."""
    text = "show every case with the result of each metric, and the means; -vv adds the statistics"
    parser.add_argument("-v", "--verbose", dest="verbosity", action="count", default=0, help=text)


def add_templates(parser: argparse.ArgumentParser) -> None:
    """Add the options for user templates."""
    parser.add_argument("--comment-template", metavar="FILE", help="user template for comment.md")
    parser.add_argument("--summary-template", metavar="FILE", help="user template for summary.md")


def path(text: str | None) -> Path | None:
    """Return the path that an option names; ``None`` without one."""
    return Path(text) if text else None


def day(text: str) -> date:
    """Return the day in the form YYYY-MM-DD.

    Raises:
        argparse.ArgumentTypeError: it has another form.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2030-01-31") from None


def fail_on(text: str | None) -> frozenset[FailOn] | None:
    """Return the value of ``--fail-on``; ``None`` if it is not given.

    Raises:
        ConfigError: a word is not allowed.
    """
    from agenteval.gate.verdict import parse_fail_on

    try:
        return None if text is None else parse_fail_on(text)
    except ValueError as error:
        raise ConfigError(Problem(f"--fail-on: {error}", kind=Kind.OPTION)) from None


def not_empty(text: str) -> str:
    """Return a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("needs a file or a folder")
    return text


def positive(text: str) -> int:
    """Return a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def times(text: str) -> int:
    """Return how often, or how many at the same time."""
    number = positive(text)
    # That of `agenteval.suite.model`, which few commands need.
    if number > 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is more than 1,000,000")
    return number


def count(text: str) -> int:
    """Return a whole number."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def amount(text: str) -> float:
    """Return an amount in US dollars."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in US dollars")
    return number


def seconds(text: str) -> float:
    """Return a duration above 0 in seconds; the text may have a unit."""
    from agenteval.core.validation import seconds as read

    try:
        number = float(read(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


_COMMENT = ("always", "changes", "failures", "never")


def add_github(commands: Any) -> None:
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
    from agenteval.github.action import GithubOptions

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
    from agenteval.core.escape import terminal
    from agenteval.core.secrets import mask
    from agenteval.github.publisher import PublishOptions
    from agenteval.github.saved_results import PublishTarget, dry_run, publish_file

    options = PublishOptions(
        arguments.comment, arguments.comment_id, arguments.check_name, not arguments.no_annotations
    )
    target = PublishTarget(arguments.repository, arguments.pull_request, arguments.commit)
    config = path(arguments.config)
    publish = dry_run if arguments.dry_run else publish_file
    for text in publish(Path(arguments.results), target, options, config, os.environ):
        print(terminal(mask(text), multiline=True))
    return 0


def _action(arguments: argparse.Namespace) -> int:
    from agenteval.github import action

    return action.clean_up(os.environ) if arguments.clean_up else action.main(os.environ)
