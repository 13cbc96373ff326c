"""What the options of commands have in common, and the commands for GitHub."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.run.options import BY_NAME, Option

if TYPE_CHECKING:
    from agenteval.run.config import Settings


_CHOICE = re.compile(
    r"(?:argument (?P<of>.+?): )?invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)$", re.DOTALL
)
_ARGUMENT = re.compile(r"argument (?P<of>.+?): (?P<problem>.*)", re.DOTALL)
#: The name of the command in messages of argparse.
COMMAND = "COMMAND"


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, with the command or value that was probably meant.

    Attributes:
        experts: the options that only the whole help shows.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.experts: list[argparse.Action] = []

    def format_help(self, *, whole: bool = False) -> str:
        """Return the help; only a whole one shows the options for experts."""
        texts = {} if whole else {action: action.help for action in self.experts}
        for action in texts:
            action.help = argparse.SUPPRESS
        try:
            return super().format_help()
        finally:
            for action, text in texts.items():
                action.help = text

    def error(self, message: str) -> NoReturn:
        """Raise a mistake in the command line."""
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


class HelpAll(argparse.Action):
    """Prints the whole help."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print it, and end the program."""
        print(parser.format_help(whole=True) if isinstance(parser, Parser) else parser.format_help(), end="")
        parser.exit()


class Choices:
    """The values of an option, from a function ``module:name`` that is imported when it is needed."""

    def __init__(self, names: str) -> None:
        self._module, _, self._function = names.partition(":")

    def __iter__(self) -> Iterator[str]:
        return iter(getattr(import_module(self._module), self._function)())

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)


def add_command(commands: Any, name: str, function: Callable[[argparse.Namespace], int], text: str) -> Parser:
    """Add a command to the parser; the text is its help, and as a sentence its description."""
    parser: Parser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=function, parser=parser)
    return parser


def add_options(parser: argparse.ArgumentParser, *names: str, as_run: bool = False) -> list[argparse.Action]:
    """Add options of the table to a command; return those for experts."""
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    experts: list[argparse.Action] = []
    for option in map(BY_NAME.__getitem__, names):
        if option.group not in groups:
            groups[option.group] = (
                parser.add_mutually_exclusive_group()
                if option.group == "failed"
                else parser.add_argument_group("in a job of a GitHub workflow")
            )
        keywords = _keywords(option) | {"help": "as for run" if as_run else option.help}
        action = groups[option.group].add_argument(*(option.flags or (option.name,)), **keywords)
        experts += [action] if option.is_for_experts else []
    return experts


def _keywords(option: Option) -> dict[str, Any]:
    if not option.flags:
        return {"nargs": "*", "metavar": option.metavar}
    if option.action == "append":
        return {"dest": option.name, "action": "append", "metavar": option.metavar, "default": []}
    if option.action == "count":
        return {"dest": option.name, "action": "count", "default": 0}
    if option.action:
        return {"dest": option.name, "action": option.action}

    def read(text: str) -> Any:
        try:
            return option.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    choices = option.choices or None
    return {
        "dest": option.name,
        "type": read,
        "metavar": option.metavar,
        "choices": choices,
        "default": option.default,
    }


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return what the caller asked for."""
    from dataclasses import fields

    from agenteval.run.config import Settings

    names = (item.name for item in fields(Settings))
    given = {name: value for name in names if (value := getattr(arguments, name, None)) is not None}
    given |= {name: tuple(given[name]) for name in ("tags", "cases") if name in given}
    given["wants_baseline"] = "baseline" in given
    given["suites"] = tuple(map(Path, given.get("suites", ())))
    if "baseline" in given:
        given["baseline"] = Path(given["baseline"])
    return Settings(**given)


def day(text: str) -> date:
    """Return the day in the form YYYY-MM-DD."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2030-01-31") from None


def positive(text: str) -> int:
    """Return a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def add_github(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_publish(commands)
    action = add_command(
        commands, "action", _action, "run the container action: read INPUT_* and write GitHub's files"
    )
    action.add_argument("--clean-up", action="store_true", help="remove the 'in progress' note of a killed run")


def github_options(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return what is asked of a run on GitHub, by the name of the option; ``None`` without ``--github``."""
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
    return given


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
    choices = BY_NAME["comment"].choices
    option("--comment", choices=choices, default="always", help="when to comment; default: always")
    add_options(parser, "comment_id", "check_name")
    add_options(parser, "config", as_run=True)


def _publish(arguments: argparse.Namespace) -> int:
    from agenteval.core.escape import terminal
    from agenteval.core.secrets import mask
    from agenteval.github.publisher import PublishOptions
    from agenteval.github.saved_results import publish_file

    options = PublishOptions(arguments.comment, arguments.comment_id or "", arguments.check_name or "")
    target = {name: getattr(arguments, name) for name in ("repository", "pull_request", "commit")}
    results, config = Path(arguments.results), arguments.config
    for text in publish_file(results, options, config, os.environ, is_dry_run=arguments.dry_run, **target):
        print(terminal(mask(text), multiline=True))
    return 0


def _action(arguments: argparse.Namespace) -> int:
    from agenteval.github import action

    return action.clean_up(os.environ) if arguments.clean_up else action.main(os.environ)
