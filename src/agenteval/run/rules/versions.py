"""Versions of cases in the base commit and in the change: which one runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import MASK
from agenteval.core.secrets import redactor
from agenteval.gate.integrity.differences import Pairs, pair
from agenteval.gate.pairing import own_cases
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.model import Results
from agenteval.suite.model import AnswerPlace, Case, MetricConfig, Suite

_EDITED = "(edited)"


@dataclass(frozen=True)
class Versions:
    """The versions of cases that run.

    Attributes:
        pairs: the cases of the change with their versions in the base commit.
        accepted: ids of the edited cases whose new version decides alone, because somebody accepted it.
        taken: ids of all cases of the change.
    """

    pairs: Pairs
    accepted: Collection[str]
    taken: Collection[str]
    _known: dict[str, Sequence[Case]] = field(default_factory=dict, repr=False)

    def of(self, case: Case) -> Sequence[Case]:
        """Return the version that decides, and the version of the change, with its own id, if it edited the case."""
        if case.id not in self._known:
            self._known[case.id] = tuple(self._of(case))
        return self._known[case.id]

    def _of(self, case: Case) -> Iterator[Case]:
        theirs = self.pairs.base.get(case.id)
        if theirs is None or case.id in self.accepted:
            yield case
            return
        is_edited = case.id in self.pairs.edited
        same = replace(theirs, id=case.id, name=case.name, line=case.line, target=case.target)
        yield same if is_edited else _with_new_metrics(same, case)
        if is_edited:
            yield replace(case, id=self._free(case.id), name=f"{case.name} {_EDITED}")

    def _free(self, case_id: str) -> str:
        found = edited_id(case_id)
        while found in self.taken:
            found = f"{found} {_EDITED}"
        return found


def edited_id(case_id: str) -> str:
    """Return the id of the version of the change, which runs beside the one of the base commit."""
    return f"{case_id} {_EDITED}"


def _with_new_metrics(case: Case, ours: Case) -> Case:
    """Return a case with the metrics that the change adds to it; they are only reported until they are merged."""
    if case.aggregate is not None or ours.aggregate is not None or len(case.turns) != len(ours.turns):
        # A combined score must not change.
        return case
    known = {metric.id for metric in case.all_metrics}
    added = [_reported(turn.metrics, known) for turn in ours.turns]
    over_iterations = _reported(ours.metrics, known)
    if not any(added) and not over_iterations:
        return case
    turns = (replace(turn, metrics=(*turn.metrics, *new)) for turn, new in zip(case.turns, added, strict=True))
    return replace(case, turns=tuple(turns), metrics=(*case.metrics, *over_iterations))


def _reported(metrics: Iterable[MetricConfig], known: Collection[str]) -> tuple[MetricConfig, ...]:
    return tuple(
        replace(metric, gating=False, threshold=None, fail_on_error=False)
        for metric in metrics
        if metric.id not in known
    )


def pair_suites(ours: Mapping[str, Suite], theirs: Mapping[str, Suite]) -> tuple[Pairs, Mapping[str, Suite | None]]:
    """Pair the cases of the change with those of the base commit, and each suite with the one that it continues.

    A suite continues the one with its path; a new one that of its first paired case. A case that the change has moved
    into another suite counts as removed and new: its rules are other ones.

    Returns:
        The pairs, and the base commit's version of each suite of the change; ``None`` for a new one.
    """
    pairs = pair(
        (case for suite in ours.values() for case in suite.cases),
        (case for suite in theirs.values() for case in suite.cases),
    )
    path_of = {case.id: suite.path for suite in theirs.values() for case in suite.cases}
    base: dict[str, Suite | None] = {}
    moved: set[str] = set()
    for path, suite in ours.items():
        paths = {case.id: path_of[pairs.base[case.id].id] for case in suite.cases if case.id in pairs.base}
        continued = path if path in theirs else next(iter(paths.values()), "")
        base[path] = theirs.get(continued)
        moved.update(case_id for case_id, there in paths.items() if there != continued)
    return pairs.without(moved), base


def suite_version(ours: Suite, theirs: Suite | None, versions: Versions) -> Suite:
    """Return a suite with the versions of its cases that run, and the base commit's rules for the whole suite."""
    cases = tuple(version for case in ours.cases for version in versions.of(case))
    if theirs is None:
        return replace(ours, cases=cases)
    return replace(
        ours,
        cases=cases,
        iterations=theirs.iterations,
        retrieval_tools=theirs.retrieval_tools,
        metrics=theirs.metrics,
        aggregate=theirs.aggregate,
        evaluation=theirs.evaluation,
        secrets=ours.secrets | theirs.secrets,
    )


#: The new text of each expected answer.
Answers = Mapping[AnswerPlace, str]


def new_answers(wanted: Collection[str], results: Results, suites: Iterable[Suite]) -> Answers:
    """Return the expected answers that differ from the answers of a run.

    Raises:
        ConfigError: the answer of a case cannot become its expected answer; the error contains every problem.
    """
    search = _AnswerSearch(results, [(suite, case) for suite in suites for case in suite.cases])
    for case_id in wanted:
        search.look_at(case_id)
    search.check_shared(wanted)
    if search.problems:
        raise ConfigError(dict.fromkeys(search.problems))
    return search.answers


@dataclass
class _AnswerSearch:
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
