"""The arguments of a program that is an agent, with the placeholder for the input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from agenteval.suite.request_template import PLACEHOLDERS

#: What the input of a turn replaces.
INPUT = "{input}"

# An argument, or the value of an option, that is a name in braces.
_PLACEHOLDER = re.compile(r"(?:--?[\w-]+=)?(?:\{|\{\{\s*)([A-Za-z_][\w.]*)(?:\}|\s*\}\})")
# Names that people give to what a request contains; HTTP agents have placeholders for all of it.
_NAMES = "|".join((*PLACEHOLDERS, "prompt", "question", "query", "message"))
_MEANT = re.compile(rf"(?<!\$)(?!{re.escape(INPUT)})\{{\{{?\s*(?:{_NAMES})(?:\.[\w.]*)?\s*\}}")
_INTERPRETER = re.compile(
    r"(ba|da|k|z|c|tc|fi)?sh|su|cmd(\.exe)?|powershell|pwsh|python[\d.]*|pypy[\d.]*|node|deno|bun|perl|ruby|php|lua"
)
# An option that program text follows, or that ends with it.
_CODE = re.compile(r"-[a-zA-Z]*[ceEpr]|/[cC]|--(eval|print|command|run)|-Command|eval")
_CODE_INSIDE = re.compile(r"-[a-zA-Z]*[ceE][^=\w]|--(eval|print|command|run)=")
# Options of interpreters whose value is the next argument.
_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "-W", "-X", "-I", "-M", "-r", "--require", "--import", "--loader"})


def takes_input(arguments: Sequence[str]) -> bool:
    """Return whether a program gets the input as an argument."""
    return any(INPUT in argument for argument in arguments)


def with_input(arguments: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the arguments with the input; an argument stays one argument, whatever the input contains."""
    return tuple(argument.replace(INPUT, text) for argument in arguments)


def check_arguments(arguments: Sequence[str]) -> None:
    """Check the placeholders of a program's arguments.

    Raises:
        ValueError: a placeholder is unknown, or the input would become the program or part of a program text.
    """
    if arguments and INPUT in arguments[0]:
        raise ValueError(f"the program {arguments[0]!r} must not depend on the input; {INPUT} is for its arguments")
    for index, argument in enumerate(arguments):
        if _is_code(arguments, index):
            if INPUT in argument:
                raise ValueError(
                    f"{INPUT} must not be part of program text, where the input could run commands; "
                    f'pass it as a separate argument, for instance [sh, -c, \'tool "$1"\', sh, "{INPUT}"]'
                )
            continue
        whole = _PLACEHOLDER.fullmatch(argument)
        if f"{{{INPUT}}}" in argument or _MEANT.search(argument) or (whole and f"{{{whole[1]}}}" != INPUT):
            raise ValueError(
                f"{argument!r} contains an unknown placeholder; only {INPUT} is replaced. "
                "A program that needs more than the input reads the request as JSON from standard input"
            )


def _is_code(arguments: Sequence[str], index: int) -> bool:
    """Return whether an argument is the text of a program for an interpreter."""
    if index > 1 and _CODE.fullmatch(arguments[index - 1]) and _is_for_interpreter(arguments, index - 1):
        return True
    return bool(_CODE_INSIDE.match(arguments[index])) and _is_for_interpreter(arguments, index)


def _is_for_interpreter(arguments: Sequence[str], index: int) -> bool:
    """Return whether an option belongs to an interpreter: only options and their values are between the two."""
    for position in range(index - 1, -1, -1):
        argument = arguments[position]
        if _INTERPRETER.fullmatch(PurePath(argument).name):
            return True
        is_value = position > 0 and arguments[position - 1] in _WITH_VALUE
        if not (argument.startswith(("-", "+", "/")) or is_value):
            return False
    return False
