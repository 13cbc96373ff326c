"""What a reader can do next, and annotations at the lines that are to blame."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from agenteval.core import escape
from agenteval.core.records import dataclass
from agenteval.report.view import view
from agenteval.report.view.cases import KINDS, Kind
from agenteval.report.view.causes import CaseChange, Cause, causes_of
from agenteval.report.view.comparison import base_name
from agenteval.report.view.heading import one_cause_is_likely
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.comparison import ComparedCase, Comparison
from agenteval.results.model import DEFAULT_ARTIFACT, Results

_FOLDER = "agenteval-report"
_MOST_SUITES = 3
_MOST_NAMES = 3
_LONGEST_ARGUMENT = 100
_REPEATED = frozenset({"broke", "failed", "error", "fell", "suspicious"})
_ACCEPTED = frozenset({"broke", "removed", "fell"})

_HELPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"connect|refused|(?<!limit was )reach|resolve|name or service|listens",
        (
            "Is the agent started before this step, and ready? Wait for it in a step before.",
            "In a container, the services of a job are called by their names: http://agent:8000, not 127.0.0.1.",
        ),
    ),
    (
        r"\b40[13]\b|unauthori[sz]ed|forbidden|api.?key|credential|permission",
        ("Is the secret set, and named in env of the step? Runs of forks get no secrets.",),
    ),
    (
        r"\b429\b|rate.?limit|quota|too many requests",
        ("Lower concurrency, or raise the quota of the key.",),
    ),
    (
        r"\b50[0234]\b|overload|unavailable|timed? ?out|no answer within",
        ("The service was overloaded or down: run it again later, or raise timeout.",),
    ),
)


@dataclass(frozen=True)
class NextSteps:
    """The next steps of a run.

    Attributes:
        commands: that repeat the cases which need attention.
        accept: the command that accepts what was found; empty if it is no likely intention.
        helps: what usually helps if cases could not be run.
    """

    commands: tuple[str, ...] = ()
    accept: str = ""
    helps: tuple[str, ...] = ()


def next_steps(results: Results, causes: Sequence[Cause]) -> NextSteps:
    """Return the next steps of a run; empty if nothing needs attention."""
    return NextSteps(tuple(_commands(results, causes)), _accept(results, causes), _helps(causes))


def only_means_fell(results: Results, causes: Sequence[Cause]) -> bool:
    """Return whether a mean fell over cases of which some pass, and no case broke: the others alone show little."""
    fell = [found.id for cause in causes if cause.kind == "fell" for found in cause.cases]
    failed = {case.id for case in results.failed()}
    kinds = {cause.kind for cause in causes}
    return (
        "fell" in kinds and kinds.isdisjoint({"broke", "failed", "error"}) and not (fell and failed.issuperset(fell))
    )


def is_suspicious(results: Results) -> bool:
    """Return whether `agenteval prove` can tell more."""
    return results.comparison is not None and results.comparison.word == "suspicious"


def open_cases(results: Results) -> int:
    """Return how many cases `--failed` runs again: also those whose judge a limit left out."""
    summary = results.summary
    left_out = sum(case.is_open for _, case in results.cases() if case.status == "skipped") if summary.skipped else 0
    return summary.failed + summary.errors + left_out


def _not_passed(results: Results, causes: Sequence[Cause]) -> list[CaseChange]:
    """Return the cases of causes to repeat that did not pass."""
    failed = {case.id for case in results.failed()}
    return [found for cause in causes if cause.kind in _REPEATED for found in cause.cases if found.id in failed]


def _commands(results: Results, causes: Sequence[Cause]) -> list[str]:
    if _is_recorded(results):
        # The command needs the traces, which are not in the artifact.
        return []
    amount = open_cases(results)
    found = _not_passed(results, causes)
    is_mean = only_means_fell(results, causes)
    if not found and not is_mean and not is_suspicious(results):
        return []
    paths = [each.path for each in found] or [suite.path for suite in results.suites]
    suites = [shlex.quote(path) for path in dict.fromkeys(paths) if _is_plain(path)]
    named = " ".join(suites) if len(suites) <= _MOST_SUITES else ""
    if is_mean:
        return [f"{' '.join(filter(None, ('agenteval run', named)))}   # all cases: a mean is worse"]
    run, folder = _run_id(results), _FOLDER
    artifact = shlex.quote(_artifact(results) or DEFAULT_ARTIFACT)
    download = [f"gh run download {run} -n {artifact} -D {folder}   # the results of this run"] if run else []
    repeat = " ".join(part for part in ("agenteval run", named, f"--failed-in {folder}") if part)
    only = "only the case that did not pass" if amount == 1 else f"only the {amount:,} cases that did not pass"
    steps = [f"agenteval prove {folder}   # side by side with the base"] if is_suspicious(results) else []
    return [*download, *steps, *([f"{repeat}   # {only}"] if found else [])]


def _is_recorded(results: Results) -> bool:
    return results.run.coverage is not None and results.run.coverage.cases is None


def _accept(results: Results, causes: Sequence[Cause]) -> str:
    chosen = [cause for cause in causes if cause.kind in _ACCEPTED]
    if not chosen or one_cause_is_likely(causes):
        return ""
    names = [cause.metric.id for cause in chosen if cause.metric is not None]
    names += [found.name for cause in chosen if cause.metric is None for found in cause.cases]
    # Without names, everything that was found is accepted.
    listed = [shlex.quote(name) for name in names] if len(names) <= _MOST_NAMES and all(map(_is_plain, names)) else []
    run = _run_id(results)
    artifact = f" --artifact {shlex.quote(_artifact(results))}" if _artifact(results) else ""
    where = f"--run {run}{artifact}" if run else f"--from {_FOLDER}"
    return " ".join(["agenteval accept", *listed, where, '--reason "…"'])


def _helps(causes: Sequence[Cause]) -> tuple[str, ...]:
    texts = " ".join(cause.words for cause in causes if cause.kind == "error").lower()
    return next((helps for pattern, helps in _HELPS if texts and re.search(pattern, texts)), ())


def _run_id(results: Results) -> str:
    run = results.run.workflow_run_id or ""
    return run if run.isascii() and run.isdigit() else ""


def _artifact(results: Results) -> str:
    name = results.run.workflow_artifact or ""
    return name if name != DEFAULT_ARTIFACT and _is_plain(name) else ""


def _is_plain(text: str) -> bool:
    return (
        len(text) <= _LONGEST_ARGUMENT and escape.terminal(escape.one_line(text)) == text and not text.startswith("-")
    )


# Annotations at the lines of the suite files: one for each cause that needs attention, at its first case.
#
# GitHub shows annotations as plain text. It rejects a check run with a character beyond U+FFFF (status 422, "invalid"
# ``annotations``), so such characters are replaced by their code points (``[U+1F600]``).


#: GitHub accepts 255 characters.
MOST_TITLE = 255
#: A check run accepts 64 KB, a workflow command 4,096 characters. This limit fits into both.
MOST_MESSAGE = 2_000

Level = Literal["failure", "warning", "notice"]

_MOST = 1_000
_LINES = 2**31 - 1
# A headline, five facts and an answer are below MOST_MESSAGE together.
_HEADLINE = 250
_FACT = 250
_FACTS = 5
_ANSWER = 300
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
# Kinds of cases that are annotated. What is not held against the change is only a notice.
_LEVELS: Mapping[Kind, Level] = {
    "broke": "failure",
    "failed": "failure",
    "error": "failure",
    "fell": "warning",
    "suspicious": "warning",
    "cleared": "notice",
    "known": "notice",
    "quarantined": "notice",
    "accepted": "notice",
    "new": "notice",
}


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file.

    Attributes:
        path: relative to the root of the repository, with forward slashes.
        line: 1-based.
        level: ``warning`` for what is not proven, ``notice`` for what is not held against the change.
        title: plain text, one line; may be empty.
    """

    path: str
    line: int
    level: Level
    title: str
    message: str


@dataclass(frozen=True)
class Annotations:
    """The annotations of a run, and the number of omitted cases.

    Attributes:
        items: in the order of the causes: cases that broke first.
        hidden: number of causes beyond the limit.
        without_file: number of causes in suites that are not a file of the repository.
    """

    items: tuple[Annotation, ...]
    hidden: int = 0
    without_file: int = 0


def annotate(results: Results, *, most: int = _MOST) -> Annotations:
    """Return one annotation for each cause, at the line of its first case."""
    comparison = results.comparison
    located = {case.id: case for _, case in results.cases()}
    compared = {case.id: case for case in comparison.cases} if comparison else {}
    found = [(cause, cause.cases[0]) for cause in causes_of(results) if cause.kind in _LEVELS and cause.cases]
    placed = [(cause, first) for cause, first in found if _is_in_repository(first.path)]
    items = tuple(
        _annotation(cause, first, located[first.id], compared.get(first.id), comparison)
        for cause, first in placed[:most]
        if first.id in located
    )
    return Annotations(items, max(0, len(placed) - most), len(found) - len(placed))


def _annotation(
    cause: Cause, first: CaseChange, case: CaseResult, compared: ComparedCase | None, comparison: Comparison | None
) -> Annotation:
    line = first.line or 1
    others = f" and {len(cause.cases) - 1:,} like it" if len(cause.cases) > 1 else ""
    told = _facts(case, compared) if cause.kind != "new" else ()
    return Annotation(
        path=first.path,
        line=line if 1 <= line <= _LINES else 1,
        level=_LEVELS[cause.kind],
        title=f"{_plain(first.name, MOST_TITLE - len(others))}{others}",
        message="\n".join([_plain(_headline(cause, comparison), _HEADLINE), *told, *_answer(case, cause.kind)]),
    )


def _headline(cause: Cause, comparison: Comparison | None) -> str:
    """Return ``Broke: 18/18 passed on main, 0/6 here, all for the same reason``."""
    words = KINDS[cause.kind].words
    passed = [f"{cause.before} passed on {base_name(comparison)}"] if cause.before else []
    passed += [f"{cause.now} {'here' if passed else 'passed'}"] if cause.now else []
    alike = ["all give the same answer"] if cause.by == "answer" else []
    said = ", ".join([*passed, *alike])
    return f"{words[0].upper()}{words[1:]}{f': {said}' if said else ''}"


def _facts(case: CaseResult, compared: ComparedCase | None) -> Iterator[str]:
    # If a regression has no failed score, its scores dropped.
    found = view.facts(case) or (tuple(view.got_worse(compared)) if compared else ())
    for fact in found[:_FACTS]:
        yield _plain(str(fact), _FACT)
    if len(found) > _FACTS:
        yield f"… and {len(found) - _FACTS:,} more"


def _answer(case: CaseResult, kind: Kind) -> Iterator[str]:
    """Yield the answer of the first turn that did not pass, else of the last turn."""
    iteration = case.telling_iteration
    turns = iteration.turns if iteration and kind != "new" else []
    shown = next(filter(_is_bad, turns), turns[-1] if turns else None)
    if shown is not None and (answer := _plain(shown.response or "", _ANSWER)):
        yield f"Answer: {answer}" if len(turns) == 1 else f"Answer in turn {shown.index + 1}: {answer}"


def _is_bad(turn: TurnResult) -> bool:
    return turn.error is not None or any(score.passed is False or score.status == "error" for score in turn.scores)


def _plain(text: str, limit: int) -> str:
    """Return one line of at most ``limit`` characters that GitHub accepts and no runner executes as a command."""
    known = _BEYOND.sub(lambda found: f"[U+{ord(found[0]):X}]", escape.one_line(text, limit))
    # This step is last, because the added brackets must not complete a command in untrusted text.
    line = escape.terminal(known)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _is_in_repository(path: str) -> bool:
    """Return whether the path can be a file in the repository, with a name that GitHub accepts."""
    pure = PurePosixPath(path)
    is_inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
    return is_inside and escape.terminal(path) == path and not _BEYOND.search(path)
