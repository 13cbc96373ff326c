"""Writes the answers of a run as expected answers into suite files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agenteval.core.document import dotted
from agenteval.core.edit import NotReplaceableError, Replacements, with_toml_texts, with_yaml_texts
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_TEXT, read_regular
from agenteval.core.records import dataclass
from agenteval.core.redact import MASK
from agenteval.core.secrets import redactor
from agenteval.core.text import place_of
from agenteval.core.writing import write_file
from agenteval.gate.pairing import own_cases
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.model import Results
from agenteval.run.rules.versions import edited_id
from agenteval.suite.model import AnswerPlace, Case, Suite

#: The new text of each expected answer.
Answers = Mapping[AnswerPlace, str]


def new_answers(wanted: Collection[str], results: Results, suites: Iterable[Suite]) -> Answers:
    """Return the expected answers that differ from the answers of a run."""
    cases = {case.id: (suite, case) for suite in suites for case in suite.cases}
    answers: dict[AnswerPlace, str] = {}
    problems: list[Problem] = []
    for case_id in wanted:
        if case_id not in cases:
            message = f"{case_id} is in no suite here, so its answer cannot be updated"
            problems.append(Problem(message, kind=Kind.FILE))
            continue
        suite, case = cases[case_id]
        try:
            for place, text in _texts(suite, case, _result(case, results)).items():
                if answers.setdefault(place, text) != text:
                    raise _NoAnswerError("is answered differently than another case with the same expected answer")
        except _NoAnswerError as error:
            problems.append(_at_case(suite, case, str(error)))
    problems += [
        _at_case(suite, case, "has the same expected answer; name it too")
        for suite, case in cases.values()
        if case.id not in wanted and any(turn.answer_at in answers for turn in case.turns)
    ]
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return answers


class _NoAnswerError(AgentEvalError):
    """No answer of the run can be expected of a case; the text continues its name."""


def _result(case: Case, results: Results) -> CaseResult:
    found = {result.id: result for _, result in results.cases()}
    result = found.get(edited_id(case.id)) or found.get(case.id)
    if result is None:
        raise _NoAnswerError("is not in the results")
    ran = own_cases(results).get(result.id)
    if ran is None or ran.fingerprint != case.fingerprints.question:
        raise _NoAnswerError("asks something else than in the results; run it again")
    return result


def _texts(suite: Suite, case: Case, result: CaseResult) -> Mapping[AnswerPlace, str]:
    found: dict[AnswerPlace, str] = {}
    for index, turn in enumerate(case.turns):
        if turn.answer_at is not None:
            text = _answer([item.turns[index] for item in result.iterations if index < len(item.turns)], result)
            if text != turn.answer_at.text:
                found[turn.answer_at] = text
    if not found:
        raise _NoAnswerError(_unchanged(suite, case))
    return found


def _answer(turns: Sequence[TurnResult], result: CaseResult) -> str:
    texts = {turn.response for turn in turns if turn.response is not None and not turn.error}
    if not turns or len(turns) < len(result.iterations) or any(turn.response is None or turn.error for turn in turns):
        raise _NoAnswerError("was not answered in every iteration")
    if any("response" in turn.shortened for turn in turns):
        raise _NoAnswerError("has an answer of which the results contain only the beginning")
    if len(texts) > 1:
        raise _NoAnswerError(f"has {len(texts)} different answers in its iterations, so none of them can be expected")
    (text,) = texts
    if MASK in text or redactor()(text) != text:
        raise _NoAnswerError(f"has an answer with a secret: {MASK} stands for it in the results")
    return text


def _unchanged(suite: Suite, case: Case) -> str:
    if any(turn.answer_at is not None for turn in case.turns):
        return "is answered as expected; accept it without --update"
    if not any(turn.answer_at is not None for other in suite.cases for turn in other.turns):
        return f"expects no whole text, like all cases of this {suite.format} suite, so there is nothing to update"
    return "expects no whole text, so there is nothing to update"


def _at_case(suite: Suite, case: Case, message: str) -> Problem:
    return Problem(message, file=suite.path, line=case.line, path=case.name, kind=Kind.FILE)


_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class ChangedFile:
    """A file before and after a change."""

    path: Path
    name: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (_LINE.findall(text) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, f"a/{self.name}", f"b/{self.name}")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def changed_files(answers: Answers) -> list[ChangedFile]:
    """Return the suite files with new expected answers; nothing is written."""
    by_file: dict[str, dict[tuple[str | int, ...], str]] = {}
    for place, text in answers.items():
        by_file.setdefault(place.file, {})[place.keys] = text
    files, problems = [], []
    for name, texts in by_file.items():
        try:
            files.append(_changed(name, texts))
        except NotReplaceableError as error:
            problems.append(Problem(error.why, file=name, line=error.line, path=dotted(error.keys), kind=Kind.FILE))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return files


def _changed(name: str, texts: Replacements) -> ChangedFile:
    path = place_of(name)
    if path is None:
        raise ConfigError(Problem("is not in this repository, so it cannot be updated", file=name, kind=Kind.FILE))
    try:
        # With all its bytes: a line break of Windows stays one.
        before = read_regular(path, limit=LARGEST_TEXT).decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(Problem(f"cannot be read: {why}", file=name, kind=Kind.FILE)) from None
    is_toml = path.suffix.lower() == ".toml"
    after = with_toml_texts(before, texts) if is_toml else with_yaml_texts(before, name, texts)
    return ChangedFile(path, name, before, after)


@contextmanager
def written(files: Sequence[ChangedFile]) -> Iterator[None]:
    """Write the files; an error in the block, or while they are written, restores all of them."""
    done: list[ChangedFile] = []
    try:
        for file in files:
            done.append(file)
            _write(file.path, file.after)
        yield
    except BaseException:
        for file in done:
            _write(file.path, file.before)
        raise


def _write(path: Path, text: str) -> None:
    mode = path.stat().st_mode
    write_file(path.parent, path.name, text.encode("utf-8"))
    path.chmod(mode)
