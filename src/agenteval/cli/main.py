"""Parses options, calls one function, and maps outcomes to exit statuses; ``commands`` contains the commands."""

from __future__ import annotations

import argparse
import atexit
import errno
import functools
import gc
import io
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from agenteval.cli import commands, options, run
from agenteval.cli.options import COMMAND, Parser
from agenteval.core.errors import AgentEvalError, InfrastructureError, ending_signals, unexpected_error
from agenteval.core.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Buffer


# Standard output and error that may be closed, full, or read by nobody: what they cannot take is dropped.
#
# The gate decides the exit status, and the reports contain the results, so output without a reader changes neither.


# The reader has ended, or there never was one.
_UNREAD = {errno.EPIPE, errno.EBADF, errno.ECONNRESET, errno.ESHUTDOWN}


class _Output(io.FileIO):
    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.problem: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write as much as the descriptor takes, or drop all; returns the number of bytes."""
        size = memoryview(data).nbytes
        if self.problem is not None:
            return size
        try:
            while (written := super().write(data)) is None:
                # Who started us made it non-blocking.
                select.select([], [self], [])
        except OSError as error:
            self.problem = error
            return size
        return written


def protect_standard_streams() -> None:
    """Make errors of standard output and error harmless, and escape characters that their encoding lacks.

    A stream that was closed at the start writes to the null device: the next file that is opened must not get its
    descriptor. Streams that a caller of :func:`agenteval.cli.main.main` put in place stay.
    """
    _open_missing_descriptors()
    sys.stdout = _protected(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _protected(sys.stderr, sys.__stderr__, 2)


def loss(stream: TextIO) -> str:
    """Flush a stream; return why text was lost, in words, or an empty text.

    A reader that ended early, as ``head`` does, wanted no more text.
    """
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    problem = raw.problem if isinstance(raw, _Output) else None
    return "" if problem is None or problem.errno in _UNREAD else str(problem.strerror)


def _open_missing_descriptors() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system gives the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _protected(stream: TextIO | None, original: TextIO | None, descriptor: int) -> TextIO:
    is_console = sys.platform == "win32" and stream is not None and stream.isatty()
    if stream is not original or is_console:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
        return stream or io.StringIO()
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor)),
        encoding=stream.encoding if stream is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=stream is None or bool(getattr(stream, "line_buffering", False)),
        write_through=descriptor == 2,
    )


_EPILOG = """exit status:
  0  the gate passed
  1  the gate failed, or is unproven for a reason that you can fix in the change
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
_PRINTING = frozenset({"explain", "list", "plugins", "report", "schema"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
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
    """Let all signals that end a run remove temporary files and locks, as Ctrl-C does."""
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
    # Imported here: `agenteval --version` and help need none of it.
    from agenteval.core.secrets import masking

    with masking():
        try:
            status: int = arguments.command(arguments)
            return status
        except AgentEvalError as error:
            return _failed(error, words=arguments.words)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except Exception as error:
            if os.environ.get("RUNNER_DEBUG") == "1":
                raise
            return _failed(unexpected_error(error), words=arguments.words)


def _failed(error: AgentEvalError, words: Sequence[str]) -> int:
    # Imported here: most commands do not fail.
    from agenteval.cli.output import fail

    return fail(error, undone=_UNDONE.get(words[0], _NOTHING_RAN) if words else _NOTHING_RAN)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    words = list(sys.argv[1:] if argv is None else argv)
    arguments, rest = command_line().parse_known_args(words)
    arguments.words = words
    _check_values(arguments.parser, words)
    options = [item for item in rest if item.startswith("-")]
    if options or (rest and not hasattr(arguments, "suites")):
        arguments.parser.error(
            _unknown(arguments.parser, options[0].partition("=")[0])
            if options
            else f"unexpected argument {rest[0]!r}"
        )
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


def _unknown(parser: Parser, name: str) -> str:
    from agenteval.core.text import did_you_mean
    from agenteval.run.config_file import place_of
    from agenteval.run.options import GONE

    flags = re.findall(r"--[a-z-]+", parser.format_help(whole=True))
    longer = min((flag for flag in flags if flag.startswith(name)), key=len, default="")
    hint = f"; did you mean {longer!r}?" if longer else did_you_mean(name, flags)
    place = place_of(name)
    if place and (not hint or name.removeprefix("--").replace("-", "_") in GONE):
        hint = f"; {place}"
    return f"unknown option {name!r}{hint}"


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
    subparsers: Any = parser.add_subparsers(title="commands", metavar=COMMAND, required=True)
    for add in (run.add_run, commands.add_results, commands.add_accept, commands.add_project, options.add_github):
        add(subparsers)
    return parser
