"""The details of a case, and the differences of two texts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from agenteval.core.escape import visible
from agenteval.core.records import dataclass
from agenteval.report.view import view
from agenteval.report.view.cases import others
from agenteval.report.view.comparison import history_note
from agenteval.report.view.view import Fact
from agenteval.results.case import CaseResult, Shortened, SuiteResult, TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase
from agenteval.results.masking import shortened_note

# Number of words that are shown on either side of a change in a long answer.
_CONTEXT = 12
# Below this share of common characters, the words of two answers are not compared.
_LEAST_IN_COMMON = 0.3
# In longer answers, the text between the first and the last change counts as one change.
_MOST_WORDS = 800
_MOST_CHARACTERS = 8_000

# A number or word with its inner signs (42.49, don't, foo_bar), one character of a script without blanks, or one
# other character; with the white space after it.
_WORD = (
    r"(?: [\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"  | [^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
    r"    (?: [.,'’_-] [^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+ )*"
    r"  | \S ) \s* | \s+"
)


@dataclass(frozen=True)
class Piece:
    """A part of an answer; ``changed`` if the other answer does not have it."""

    text: str
    changed: bool = False


Pieces = tuple[Piece, ...]


@dataclass(frozen=True)
class _WordRun:
    same: bool
    before: tuple[str, ...]
    after: tuple[str, ...]


def difference(before: str, after: str, limit: int) -> tuple[Pieces, Pieces] | None:
    """Return both answers in pieces, each answer at most about ``limit`` characters long.

    Of longer answers, only the surroundings of changes are shown.

    Returns:
        The older and the newer answer; ``None`` if they have too little in common for a comparison of words.
    """
    runs = _runs(before[:_MOST_CHARACTERS], after[:_MOST_CHARACTERS])
    if runs is None:
        return None
    if max(len(before), len(after)) > limit:
        runs = tuple(_around_changes(runs))
    return _pieces([(run.before, not run.same) for run in runs], limit), _pieces(
        [(run.after, not run.same) for run in runs], limit
    )


@functools.lru_cache(maxsize=256)
def _runs(before: str, after: str) -> tuple[_WordRun, ...] | None:
    # Every level of detail compares the same answers again.
    old, new = _words(visible(before)), _words(visible(after))
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    runs = [_WordRun(True, tuple(old[:head]), tuple(new[:head]))]
    runs += _between(old[head : len(old) - tail], new[head : len(new) - tail])
    runs.append(_WordRun(True, tuple(old[len(old) - tail :]), tuple(new[len(new) - tail :])))
    merged = tuple(_merged([run for run in runs if run.before or run.after]))
    common = sum(len("".join(run.before)) for run in merged if run.same)
    longest = max(len(before), len(after))
    return merged if longest and common >= _LEAST_IN_COMMON * longest else None


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a.strip() != b.strip()), min(len(old), len(new)))


def _words(text: str) -> list[str]:
    # Compiled (5 ms) when answers differ for the first time; most runs never need it.
    found: list[str] = re.findall(_WORD, text, re.VERBOSE)
    return found


def _between(old: Sequence[str], new: Sequence[str]) -> list[_WordRun]:
    if max(len(old), len(new)) > _MOST_WORDS or not old or not new:
        return [_WordRun(False, tuple(old), tuple(new))]
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new])
    return [_WordRun(kind == "equal", tuple(old[a:b]), tuple(new[c:d])) for kind, a, b, c, d in matcher.get_opcodes()]


def _merged(runs: Sequence[_WordRun]) -> list[_WordRun]:
    """Merge changes that are separated by punctuation only."""
    merged: list[_WordRun] = []
    for index, run in enumerate(runs):
        inner = 0 < index < len(runs) - 1
        says_nothing = run.same and inner and not any(character.isalnum() for character in "".join(run.before))
        same = run.same and not says_nothing
        if merged and merged[-1].same == same:
            last = merged.pop()
            merged.append(_WordRun(same, last.before + run.before, last.after + run.after))
        else:
            merged.append(_WordRun(same, run.before, run.after))
    return merged


def _around_changes(runs: Sequence[_WordRun]) -> list[_WordRun]:
    """Return the changes with a few words before and after each."""
    kept: list[_WordRun] = []
    for index, run in enumerate(runs):
        first = _CONTEXT if index else 0
        last = _CONTEXT if index < len(runs) - 1 else 0
        if not run.same or len(run.before) <= first + last + 1:
            kept.append(run)
            continue
        kept.append(_WordRun(True, _ends(run.before, first, last), _ends(run.after, first, last)))
    return kept


def _ends(words: tuple[str, ...], first: int, last: int) -> tuple[str, ...]:
    return (*words[:first], "… ", *words[len(words) - last :])


def _pieces(runs: Sequence[tuple[tuple[str, ...], bool]], limit: int) -> Pieces:
    pieces: list[Piece] = []
    room = limit
    for words, changed in runs:
        text = "".join(words)
        if len(text) > room:
            rest = sum(len("".join(others)) for others, _ in runs) - limit
            return (*pieces, Piece(text[:room], changed), Piece(f"… ({rest:,} more characters)"))
        if text:
            pieces.append(Piece(text, changed))
        room -= len(text)
    return tuple(pieces)


Entry = tuple[SuiteResult, CaseResult]
Failure = tuple[SuiteResult, CaseResult, ComparedCase | None]
Link = Callable[[str, int | None], str]

NOT_PASSED = frozenset({"failed", "error"})
# Maximum number of shown turns; further turns are only counted.
_MOST_TURNS = 10
_LABELS = {"response": "answer", "input": "question", "ground_truth": "expected answer"}


@dataclass(frozen=True)
class ShownTurn:
    """A question with the answers of both runs.

    Attributes:
        turn: 1-based; ``None`` in a case of one turn.
        before: the baseline's answer; ``None`` also without a baseline.
        difference: both answers with the differing words; ``None`` if they cannot be compared.
        same: whether both whole answers are equal; those that are shown may be only the beginning.
        shortened: size and hash of each answer of which the results contain only the beginning.
    """

    turn: int | None
    input: str
    expected: str | None
    answer: str | None
    before: str | None = None
    difference: tuple[Pieces, Pieces] | None = None
    same: bool = False
    shortened: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseDetails:
    """One case in detail.

    Attributes:
        where: ``path:line`` in the suite.
        link: address of that line; empty if unknown.
        status: in words: ``failed``, or ``passed → failed`` with a baseline.
        case: the case itself; ``None`` if the file contains only its comparison.
    """

    name: str
    where: str
    link: str
    outcome: str
    status: str
    note: str
    facts: tuple[Fact, ...]
    exchanges: tuple[ShownTurn, ...]
    case: CaseResult | None = None


def regression(compared: ComparedCase, entry: Entry | None, link: Link, max_text: int) -> CaseDetails:
    """Return a case that broke, with the word-level differences of its answers.

    Args:
        link: returns the address of a line of a suite.
        max_text: maximum number of characters of an answer.
    """
    case = entry[1] if entry else None
    before, after = view.distinct(compared.score_before, compared.score_after)
    score = f"score {before} → {after}" if compared.score_before != compared.score_after else ""
    notes = (score, view.iterations_note(case) if case else "", history_note(compared))
    return CaseDetails(
        name=compared.name,
        where=view.location(*entry) if entry else "",
        link=link(entry[0].path, entry[1].line) if entry else "",
        outcome=compared.status_after or "",
        status=status_change(compared),
        note=", ".join(note for note in notes if note),
        facts=tuple(view.got_worse(compared)),
        exchanges=_answers_of_both(compared.answers, case, max_text),
        case=case,
    )


def failure(group: Sequence[Failure], link: Link) -> CaseDetails:
    """Return a failed case, or one that could not be run, for a group of cases with the same error."""
    suite, case, compared = group[0]
    notes = (view.iterations_note(case), failure_note(compared))
    return CaseDetails(
        name=f"{case.name}{others(group)}",
        where=view.location(suite, case),
        link=link(suite.path, case.line),
        outcome=case.status,
        status=case.status,
        note=", ".join(note for note in notes if note),
        facts=view.facts(case),
        exchanges=_failed_turns(case),
        case=case,
    )


def failures(entries: Iterable[Entry], compared: Iterable[ComparedCase]) -> list[Failure]:
    """Return failed cases and errors that are not regressions, with their history."""
    history = {case.id: case for case in compared}
    found = [(suite, case, history.get(case.id)) for suite, case in entries if case.status in NOT_PASSED]
    return [entry for entry in found if entry[2] is None or entry[2].change != "broke"]


def is_known(compared: ComparedCase | None) -> bool:
    """Return whether a failure is known: the case failed in the baseline too, or is quarantined."""
    return compared is not None and (compared.status_before in NOT_PASSED or "quarantined" in compared.notes)


def status_change(compared: ComparedCase) -> str:
    """Return ``passed → failed``."""
    before, after = compared.status_before or "new", compared.status_after or "removed"
    return before if before == after else f"{before} → {after}"


def failure_note(compared: ComparedCase | None) -> str:
    """Return the earlier result of a failed case."""
    if compared is None:
        return ""
    if "quarantined" in compared.notes:
        return "in quarantine"
    if compared.history is not None and (compared.notes or compared.status_before == "passed"):
        return history_note(compared)
    if compared.change == "new":
        return "new case"
    if compared.change == "changed":
        return "changed in the suite"
    if compared.status_before in NOT_PASSED:
        return "already in the baseline"
    return "passed in the baseline" if compared.status_before == "passed" else ""


def _answers_of_both(answers: list[AnswerChange], case: CaseResult | None, max_text: int) -> tuple[ShownTurn, ...]:
    """Return the turns with different answers; all turns if only the scores differ."""
    expected = _expected(case)
    several = len(expected) > 1 or any(answer.turn for answer in answers)
    different = [answer for answer in answers if not answer.same]
    return tuple(
        ShownTurn(
            turn=answer.turn + 1 if several else None,
            input=answer.input,
            expected=expected.get(answer.turn),
            answer=answer.after,
            before=answer.before,
            difference=_difference(answer, max_text) if number < _MOST_TURNS else None,
            same=answer.same,
            shortened=_notes(baseline=answer.shortened_before, answer=answer.shortened_after),
        )
        for number, answer in enumerate(different or answers)
    )


def _difference(answer: AnswerChange, max_text: int) -> tuple[Pieces, Pieces] | None:
    if not answer.before or not answer.after or answer.before == answer.after:
        return None
    return difference(answer.before, answer.after, max_text)


def shortened_notes(turn: TurnResult) -> tuple[str, ...]:
    """Return ``answer: shortened, … characters, sha256 …`` for each value of a turn that is only a beginning."""
    return _notes(**{_LABELS.get(name, name): whole for name, whole in turn.shortened.items()})


def _notes(**shortened: Shortened | None) -> tuple[str, ...]:
    """Return ``answer: shortened, … characters, sha256 …`` for each value that is only a beginning."""
    return tuple(f"{name}: {shortened_note(whole)}" for name, whole in shortened.items() if whole is not None)


def _expected(case: CaseResult | None) -> Mapping[int, str | None]:
    iteration = view.shown_iteration(case) if case else None
    return {turn.index: turn.ground_truth for turn in iteration.turns} if iteration else {}


def _failed_turns(case: CaseResult) -> tuple[ShownTurn, ...]:
    iteration = view.shown_iteration(case)
    if iteration is None:
        return ()
    several = len(iteration.turns) > 1
    return tuple(
        ShownTurn(
            turn=turn.index + 1 if several else None,
            input=turn.input,
            expected=turn.ground_truth,
            answer=turn.response,
            shortened=shortened_notes(turn),
        )
        for turn in iteration.turns
        if turn.error or any(score.passed is False or score.status == "error" for score in turn.scores)
    )
