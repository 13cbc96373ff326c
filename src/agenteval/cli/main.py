"""Parses options, calls one function, and maps outcomes to exit statuses; ``commands`` contains the commands."""

from __future__ import annotations

import argparse
import atexit
import functools
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NoReturn

from agenteval.cli.arguments import COMMAND, Parser
from agenteval.cli.commands import accept, github, project, results, suites
from agenteval.cli.streams import loss, protect_standard_streams
from agenteval.core.errors import AgentEvalError, InfrastructureError, unexpected_error
from agenteval.core.renamed import RENAMED
from agenteval.core.signals import ending_signals
from agenteval.core.version import __version__

_EPILOG = """exit status:
  0  the gate passed
  1  the gate failed, or is unproven and the change itself can mend it
  2  a suite, the configuration or an option is wrong; nothing was run
  3  the infrastructure failed (agent unreachable, too many errors, disk full),
     or the gate is unproven for another reason
  129, 130, 143
     interrupted by SIGHUP, SIGINT or SIGTERM; reports contain the finished cases"""


# An option and its value in one argument, as --out=reports or -oreports.
_JOINED = re.compile(r"(?s)(--[^=]+(?==)|-[A-Za-z](?=.))=?(.*)")
# What a command did not do after a mistake; empty for those that only show something.
_UNDONE = {
    "accept": "nothing was accepted",
    "compare": "nothing was compared",
    "explain": "",
    "explain-gate": "",
    "init": "nothing was written",
    "list": "",
    "merge": "nothing was merged",
    "open": "",
    "plugins": "",
    "publish": "nothing was published",
    "report": "nothing was written",
    "schema": "",
}
_NOTHING_RAN = "nothing was run"
# Commands whose only output is what they print.
_PRINTING = frozenset({"explain", "explain-gate", "list", "plugins", "report", "schema"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments without the program's name; default: ``sys.argv``.

    Returns:
        The exit status.
    """
    # A run keeps almost all its objects. Collecting garbage every 700 objects would take a quarter of the time.
    gc.set_threshold(100_000, 50, 1000)
    # The last collection at exit is not needed either.
    atexit.register(gc.freeze)
    protect_standard_streams()
    status = 0
    try:
        with _ended_in_order():
            status = _status(argv)
    finally:
        lost = loss(sys.stdout)
        if lost:
            print(f"agenteval: warning: standard output is incomplete: {lost}", file=sys.stderr)
    words = sys.argv[1:] if argv is None else argv
    return InfrastructureError.exit_status if lost and not status and words[0] in _PRINTING else status


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let all signals that end a run remove temporary files and locks, as Ctrl-C does.

    The first process of a container gets only the signals that it handles.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if sys.platform != "win32":
        # A caller that ignores it would take the exit status of every agent.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = {number: signal.signal(number, _end) for number in ending_signals() if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual or signal.SIG_DFL)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _status(argv: Sequence[str] | None) -> int:
    try:
        arguments = _arguments(argv)
    except AgentEvalError as error:
        return _failed(error, words=sys.argv[1:] if argv is None else argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    # Imported here: `agenteval --version` and help need none of it.
    from agenteval.core.masking import masking

    with masking():
        return _done(command, arguments)


def _done(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Return the exit status of a command; an exception becomes a message."""
    try:
        return command(arguments)
    except AgentEvalError as error:
        return _failed(error, words=arguments.words)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        if os.environ.get("RUNNER_DEBUG") == "1":
            raise
        return _failed(unexpected_error(error), words=arguments.words)


def _failed(error: AgentEvalError, words: Sequence[str]) -> int:
    """Print an error, and return its exit status.

    Args:
        error: the error.
        words: the arguments of the program; the first one names the command.
    """
    # Imported here: most commands do not fail.
    from agenteval.cli.failure import fail

    return fail(error, undone=_UNDONE.get(words[0], _NOTHING_RAN) if words else _NOTHING_RAN)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    words = _in_new_spelling(sys.argv[1:] if argv is None else argv)
    arguments, rest = command_line().parse_known_args(words)
    arguments.words = words
    _check_values(arguments.parser, words)
    options = [item for item in rest if item.startswith("-")]
    if options or (rest and not hasattr(arguments, "suites")):
        hint = _similar_option(arguments.parser, options[0]) if options else ""
        what = f"unknown option {options[0].partition('=')[0]!r}" if options else f"unexpected argument {rest[0]!r}"
        arguments.parser.error(f"{what}{hint}")
    if rest:
        # argparse accepts suites only before the first option; users also write them after it.
        arguments.suites += rest
    return arguments


def _check_values(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Check that no value is empty: a variable of a shell that is not set must not switch a baseline off."""
    for before, word in pairwise(["", *words]):
        joined = _JOINED.fullmatch(word)
        if word and not joined:
            continue
        option, value = joined.groups() if joined else (before, word)
        if not value and option != "--input":
            what = f"{option}: its value" if option.startswith("-") else "an argument"
            parser.error(f"{what} is empty; is a variable of the shell not set?")
        if value == "--":
            # For argparse, it would end the options, and this one would have no value.
            parser.error(f"{option}: '--' is not a value")


def _in_new_spelling(argv: Sequence[str]) -> list[str]:
    """Return arguments with the new names of renamed options."""
    renamed = RENAMED.get(argv[0], {}) if argv else {}
    end = argv.index("--") if "--" in argv else len(argv)
    parts = (item.partition("=") for item in argv[:end])
    return [*(f"{renamed.get(name, name)}{sign}{value}" for name, sign, value in parts), *argv[end:]]


def _similar_option(parser: argparse.ArgumentParser, text: str) -> str:
    from agenteval.core.text.choices import did_you_mean

    return did_you_mean(text.partition("=")[0], re.findall(r"--[a-z-]+", parser.format_help()))


@functools.cache
def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="agenteval",
        description="Evaluate an LLM agent against its suite, compare with a baseline, and gate the merge.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"agenteval {__version__}")
    commands: Any = parser.add_subparsers(title="commands", metavar=COMMAND, required=True)
    for group in (suites, results, accept, project, github):
        group.add(commands)
    return parser
