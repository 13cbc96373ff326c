"""Finds the answers of a run that can become the expected answers of its suites."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.compare.pairing import own_cases
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.masking import redactor
from agenteval.core.text.redact import MASK
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.model import Results
from agenteval.run.integrity.versions import edited_id
from agenteval.suite.model import AnswerPlace, Case, Suite

#: The new text of each expected answer.
Answers = Mapping[AnswerPlace, str]


def new_answers(wanted: Collection[str], results: Results, suites: Iterable[Suite]) -> Answers:
    """Return the expected answers that differ from the answers of a run.

    Args:
        wanted: ids of cases.
        results: the run.
        suites: the suites as they are now.

    Raises:
        ConfigError: the answer of a case cannot become its expected answer; the error contains every problem.
    """
    search = _Search(results, [(suite, case) for suite in suites for case in suite.cases])
    for case_id in wanted:
        search.look_at(case_id)
    search.check_shared(wanted)
    if search.problems:
        raise ConfigError(dict.fromkeys(search.problems))
    return search.answers


@dataclass
class _Search:
    """The answers and problems found so far."""

    results: Results
    cases: list[tuple[Suite, Case]]
    answers: dict[AnswerPlace, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def look_at(self, case_id: str) -> None:
        """Add the answers of one case."""
        found = next(((suite, case) for suite, case in self.cases if case.id == case_id), None)
        if found is None:
            self.problems.append(
                Problem(f"{case_id} is in no suite here, so its answer cannot be updated", kind=Kind.FILE)
            )
            return
        suite, case = found
        try:
            texts = _texts(suite, case, self._result(case))
            for place, text in texts.items():
                if self.answers.setdefault(place, text) != text:
                    raise _NoAnswerError("is answered differently than another case with the same expected answer")
        except _NoAnswerError as error:
            self.problems.append(_at_case(suite, case, str(error)))

    def _result(self, case: Case) -> CaseResult:
        """Return the result of a case; of an edited one, that of its new version.

        Raises:
            _NoAnswerError: the run says nothing about the case as it is now.
        """
        found = {result.id: result for _, result in self.results.cases()}
        result = found.get(edited_id(case.id)) or found.get(case.id)
        if result is None:
            raise _NoAnswerError("is not in the results")
        ran = own_cases(self.results).get(result.id)
        if ran is None or ran.fingerprint != case.fingerprints.question:
            raise _NoAnswerError("asks something else than in the results; run it again")
        return result

    def check_shared(self, wanted: Collection[str]) -> None:
        """Report the expected answers that other cases have too."""
        for suite, case in self.cases:
            if case.id not in wanted and any(turn.answer_at in self.answers for turn in case.turns):
                self.problems.append(_at_case(suite, case, "has the same expected answer; name it too"))


class _NoAnswerError(AgentEvalError):
    """No answer of the run can be expected of a case; the text continues its name."""


def _texts(suite: Suite, case: Case, result: CaseResult) -> Mapping[AnswerPlace, str]:
    """Return the answers to the turns of a case that differ from the expected ones.

    Raises:
        _NoAnswerError: all answers are as expected, or one of them cannot be expected.
    """
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
    """Return the answer that all iterations gave to one turn.

    Raises:
        _NoAnswerError: they did not, or the results do not contain it as it was.
    """
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


def places_by_file(answers: Answers) -> Iterator[tuple[str, dict[tuple[str | int, ...], str]]]:
    """Yield each file with its new texts by key path."""
    files: dict[str, dict[tuple[str | int, ...], str]] = {}
    for place, text in answers.items():
        files.setdefault(place.file, {})[place.keys] = text
    yield from files.items()
