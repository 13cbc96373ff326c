"""Mistakes as people see them: each once, with its first place, the source line, and the fix.

The form is that of compilers::

    error: unknown key 'tags'
      --> agent.yaml:15 and 115 more
       |
    15 |   tags:
       |   ^^^^ test_cases[].tags
       = allowed: name, input, ground_truth
       = see: https://…/docs/troubleshooting.md#unknown-key

Files that others wrote are quoted, so every text is masked, escaped for the terminal, and cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Literal

from agenteval.core.errors import AgentEvalError, Kind, Problem
from agenteval.core.escape import terminal
from agenteval.core.files import open_regular
from agenteval.core.records import dataclass
from agenteval.core.secrets import is_secret_name, mask
from agenteval.core.text import repository_of, width, working_directory
from agenteval.core.version import DOCUMENTATION

# Bytes of a file from which lines are quoted.
_LARGEST = 20_000_000
# Characters of a line that are shown.
_LONGEST = 96
_BEFORE = 40
_LONGEST_MARK = 40

_HIDDEN = "…"
_DEFAULT = re.compile(r"(\$\{\w+:-)[^}]*")
# A key with its value: the rest of the line, or the value in a list of keys on one line.
_PAIR = re.compile(
    r"""(?P<key> (?:^|(?<=[\s{,])) ["']? (?P<name>[\w.-]+) ["']? \s* [:=] \s+ )
        (?P<value> "[^"]*" | '[^']*' | (?P<rest>[^\s,{}\[\]][^,}]*) )""",
    re.VERBOSE,
)
_WHOLE = re.compile(r"""^\s*(?:-\s+)?["']?(?P<name>[\w.-]+)["']?\s*[:=]\s*(?P<value>[^{\[\s].*)$""")
_VARIABLE = re.compile(r"\$\{\w+(?::-…?)?\}")
_OTHER_SECRETS = frozenset({"authorization", "cookie", "connection_string", "x-api-key"})


@dataclass(frozen=True)
class SourceLine:
    """A line as messages quote it.

    Attributes:
        text: the line, or the part around the mark.
        start: columns before the mark.
    """

    text: str
    start: int
    width: int


def source_line(file: str, line: int | None, marks: Sequence[str]) -> SourceLine | None:
    """Return a line of a file; ``None`` if it cannot be read.

    Args:
        marks: texts to mark in this order: the last that is found, each after the one before it.
    """
    written = _read(file, line) if file and line else None
    if written is None or not written.strip():
        return None
    text = _quotable(written)
    start, end = _found(text, marks)
    first = max(0, start - _BEFORE) if len(text) > _LONGEST else len(text) - len(text.lstrip())
    # A little indentation shows that the line is inside of something.
    first = max(0, first - 2) if first and len(text) <= _LONGEST else first
    cut = text[first : first + _LONGEST]
    before = "…" if first and len(text) > _LONGEST else ""
    after = "…" if first + _LONGEST < len(text) else ""
    place = min(start - first, len(cut))
    marked = cut[place : min(end - first, place + _LONGEST_MARK)]
    return SourceLine(f"{before}{cut}{after}", width(before + cut[:place]), max(1, width(marked)))


# Mistakes of one line follow each other, and the line can be the whole file.
@lru_cache(maxsize=1)
def _quotable(line: str) -> str:
    return terminal(mask(_without_secrets(line.rstrip()))).rstrip()


def _read(file: str, line: int) -> str | None:
    for path in _places(file):
        try:
            with TextIOWrapper(open_regular(path, limit=_LARGEST), encoding="utf-8", errors="replace") as source:
                return next(islice(source, line - 1, line), None)
        except (OSError, ValueError):
            continue
    return None


def _places(file: str) -> Iterable[Path]:
    """Return where a file can be that messages show by this name; see ``display_path``."""
    try:
        here = working_directory()
    except AgentEvalError:
        return ()
    root = repository_of(here)
    return (*((root / file,) if root is not None else ()), here / file)


def _without_secrets(line: str) -> str:
    """Return a line without the values of keys for secrets; names of variables stay."""
    line = _DEFAULT.sub(rf"\1{_HIDDEN}", line)
    whole = _WHOLE.match(line)
    if whole is not None and _is_secret(whole["name"]):
        return line[: whole.start("value")] + _hidden(whole["value"])
    return _PAIR.sub(lambda pair: pair["key"] + _hidden(pair["value"]) if _is_secret(pair["name"]) else pair[0], line)


def _is_secret(name: str) -> bool:
    return is_secret_name(name) or name.lower() in _OTHER_SECRETS


def _hidden(value: str) -> str:
    """Return the variables of a value; everything else is hidden."""
    variables = _VARIABLE.findall(value)
    return " ".join(variables) if variables else _HIDDEN


def _found(text: str, marks: Sequence[str]) -> tuple[int, int]:
    start = len(text) - len(text.lstrip(" -"))
    first = re.compile(r"[^\s:=,{}\[\]]+").match(text, start)
    place = (start, first.end() if first else start + 1)
    position = 0
    for mark in marks:
        shown = terminal(mask(mark))
        found = re.compile(rf"(?<!\w){re.escape(shown)}(?!\w)").search(text, position)
        if found is not None:
            place, position = found.span(), found.end()
    return place


Style = Literal["error", "warning", "place", "frame", "title", "mark", "note", "plain"]

# Mistakes of one file that are shown.
_MOST_OF_FILE = 20
# Places that the one-line form lists.
_MOST_PLACES = 5
_QUOTED = re.compile(r"'([^']+)'")
_INDEX = re.compile(r"\[\d+\]")
# A semicolon between clauses, but not inside of a quoted text.
_CLAUSE = re.compile(r"""((?:'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|[^;]|;(?! ))*)(?:;\ |$)""", re.VERBOSE)
_WORDS = re.compile(r"(?P<word>allowed|commands|defined|found|installed|known|nearest): ")
# A traceback names files that the agent chose; only a definition has a mark.
_UNQUOTED = {Kind.AGENT_FAILS}


@dataclass(frozen=True)
class Mistake:
    """The same mistake at one or several places.

    Attributes:
        others: the other places, in the order in which they were found.
        number: of a summary, how many mistakes it stands for.
    """

    problem: Problem
    others: tuple[Problem, ...] = ()
    number: int = 1

    def __str__(self) -> str:
        return f"{self.problem}{self._elsewhere()}"

    @property
    def text(self) -> str:
        """The mistake without its first place, as one paragraph."""
        path = f"{self.problem.path}: " if self.problem.path else ""
        return f"{path}{self.problem.message}{self._elsewhere()}"

    @property
    def page(self) -> str:
        """The address of the explanation."""
        return page_of(self.problem.kind)

    def _elsewhere(self) -> str:
        if not self.others:
            return ""
        places = list(dict.fromkeys(problem.place for problem in self.others if problem.place))[:_MOST_PLACES]
        more = f" and {len(self.others) - len(places)} more" if len(self.others) > len(places) else ""
        noun = "place" if len(self.others) == 1 else "places"
        # A message of several lines ends with an example.
        start = "\n  " if "\n" in self.problem.message else "; "
        return f"{start}the same in {len(self.others)} other {noun}: {', '.join(places)}{more}"


def page_of(kind: Kind) -> str:
    """Return the address of the documentation about a kind of problems."""
    return f"{DOCUMENTATION}/troubleshooting.md#{kind}"


def mistakes(problems: Iterable[Problem]) -> list[Mistake]:
    """Return each mistake once: the same message about keys of the same name, wherever they are.

    Of a file with many mistakes, the last one sums up those after the first 20.
    """
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in dict.fromkeys(problems):
        groups.setdefault((problem.message, _key(problem)), []).append(problem)
    shown: list[Mistake] = []
    omitted: dict[str, list[Problem]] = {}
    files = Counter[str]()
    for first, *others in groups.values():
        files[first.file] += 1
        if files[first.file] > _MOST_OF_FILE:
            omitted.setdefault(first.file, []).append(first)
        else:
            shown.append(Mistake(first, tuple(others)))
    for file, more in omitted.items():
        noun = "mistake" if len(more) == 1 else "mistakes"
        text = f"{len(more):,} more {noun} in this file; correct the others first"
        shown.append(Mistake(Problem(text, file=file, kind=more[0].kind), number=len(more)))
    return shown


@dataclass(frozen=True)
class LinePart:
    """A part of a line, with what it is."""

    text: str
    style: Style = "plain"


Line = Sequence[LinePart]


def shown(mistake: Mistake, level: Literal["error", "warning"] = "error") -> Iterator[Line]:
    """Yield the lines that show a mistake on a terminal, safe to print."""
    problem = mistake.problem
    first, *example = mask(problem.message).split("\n")
    what, *rest = _clauses(first)
    if rest and rest[0].startswith("did you mean"):
        what = f"{what}; {rest.pop(0)}"
    yield [LinePart(level, level), LinePart(f": {terminal(_titled(what, problem))}", "title")]
    is_quoted = problem.kind not in _UNQUOTED or problem.mark
    quoted = source_line(problem.file, problem.line, _marks(problem)) if is_quoted else None
    margin = " " * (len(str(problem.line)) if quoted else 1)
    if problem.place:
        path = f" ({_path(problem)})" if quoted is None and "." in problem.path else ""
        place = LinePart(f"{terminal(mask(problem.place))}{path}", "place")
        yield [LinePart(f"{margin}--> ", "frame"), place, LinePart(_more(mistake), "note")]
    if quoted is not None:
        yield from _quotation(quoted, problem, margin)
    for word, text in _notes(rest):
        yield [LinePart(f"{margin} = ", "frame"), LinePart(f"{word}:", "title"), LinePart(f" {terminal(text)}")]
    for line in example:
        yield [LinePart(f"{margin}   {terminal(line)}")]
    yield [LinePart(f"{margin} = ", "frame"), LinePart("see:", "title"), LinePart(f" {mistake.page}", "note")]


def counted(found: Sequence[Mistake]) -> str:
    """Return the number of mistakes and of their places: ``2 mistakes in 117 places``."""
    places = sum(1 + len(mistake.others) for mistake in found)
    number = sum(mistake.number for mistake in found)
    noun = "mistake" if number == 1 else "mistakes"
    where = f" in {places} places" if places > len(found) else ""
    return f"{number:,} {noun}{where}"


def _key(problem: Problem) -> str:
    return _INDEX.sub("", problem.path).rpartition(".")[2]


def _titled(what: str, problem: Problem) -> str:
    """Return the problem, with the name of the key or option unless the text contains it."""
    key = mask(_key(problem))
    if not key:
        return what
    for start, title in _OF_KEYS.items():
        if what.startswith(start):
            return f"{title} {key!r}{what[len(start) :]}"
    if key in what or what.startswith("--"):
        return what
    # A value is named first: threshold 70 is out of range.
    return f"{key} {what}" if _VALUE.match(what) else f"{key}: {what}"


# The beginning of a message → the same with the name of the key after it.
_OF_KEYS = {"unknown key": "unknown key", "this key is required": "missing key"}
_VALUE = re.compile(r"""['"]|-?\d""")


def _more(mistake: Mistake) -> str:
    return f" and {len(mistake.others)} more" if mistake.others else ""


def _clauses(text: str) -> list[str]:
    return [found[1].strip() for found in _CLAUSE.finditer(text) if found[1].strip()] or [text]


def _notes(clauses: Sequence[str]) -> Iterator[tuple[str, str]]:
    fixes = []
    for clause in clauses:
        word = _WORDS.match(clause)
        if word is None:
            fixes.append(clause)
        else:
            yield word["word"], clause[word.end() :]
    if fixes:
        yield "help", "; ".join(fixes)


def _marks(problem: Problem) -> tuple[str, ...]:
    """Return what to mark: the key, or the wrong value after it, which is the first quoted text of a message."""
    quoted = _QUOTED.search(_clauses(problem.message.partition("\n")[0])[0])
    value = problem.mark or (quoted[1] if quoted and problem.kind is not Kind.UNKNOWN_KEY else "")
    return tuple(text for text in (_key(problem), value) if text)


def _quotation(quoted: SourceLine, problem: Problem, margin: str) -> Iterator[Line]:
    yield [LinePart(f"{margin} |", "frame")]
    yield [LinePart(f"{problem.line} | ", "frame"), LinePart(quoted.text)]
    label = f" {_path(problem)}" if problem.path else ""
    yield [LinePart(f"{margin} | ", "frame"), LinePart(f"{' ' * quoted.start}{'^' * quoted.width}{label}", "mark")]


def _path(problem: Problem) -> str:
    return terminal(mask(_INDEX.sub("[]", problem.path)))
