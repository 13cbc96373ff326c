"""The gate's verdict, as results.json records it, the concepts, and the words of criteria."""

from __future__ import annotations

from collections.abc import Mapping
from operator import not_
from typing import Literal

from pydantic import Field

from agenteval.core.records import dataclass, field
from agenteval.results.case import Criterion, ResultsModel, Text

#: The only verdicts. Outputs, comment, check run, results.json and terminal use these words.
Verdict = Literal["passed", "failed", "unproven", "error"]
#: Who can mend something: the author of the change, or the operator of judge, budget and base.
MendedBy = Literal["change", "outside"]
PointKind = Literal[
    "cases",
    "metric",
    "criterion",
    "scores",
    "errors",
    "proof",
    "budget",
    "time",
    "nothing",
    "part",
    "rules",
    "baseline",
]


class Unproven(ResultsModel):
    """Something that counts and was not evaluated, compared or confirmed.

    Attributes:
        what: its kind.
        text: for people: one short sentence without a full stop.
        details: further sentences.
        mended_by: who can mend it.
    """

    what: PointKind
    text: Text
    details: tuple[Text, ...] = Field(default=(), exclude_if=not_)
    mended_by: MendedBy


class Rules(ResultsModel):
    """The rules of a decision. In a file that somebody else wrote, they are only a claim.

    Attributes:
        fail_on: the kinds of problems that failed the gate.
        max_error_rate: share of cases that could end in an error.
        quarantine: ids of the cases that did not count.
        required: names or ids, with ``*``, of the cases that had to pass whatever the baseline says.
    """

    fail_on: tuple[str, ...]
    max_error_rate: float
    quarantine: tuple[Text, ...] = ()
    required: tuple[Text, ...] = Field(default=(), exclude_if=not_)


class Condition(ResultsModel):
    """A condition of the gate that a run does not meet.

    Attributes:
        found: what was found: ``2 of 5 cases broke``.
        rule: the condition, as the configuration writes it: ``fail-on: regressions``; may be empty.
    """

    found: Text
    rule: Text = Field(default="", exclude_if=not_)

    def __str__(self) -> str:
        return f"{self.found} ({self.rule})" if self.rule else self.found


class Gate(ResultsModel):
    """The gate's decision on a run.

    Attributes:
        verdict: the decision in one word.
        exit_status: the command's: 0, 1 or 3; 2 if no metric applies to any case; above 128 for a signal.
        headline: the decision in one phrase.
        reasons: every reason, the most important first, also of what does not fail it; empty for a passed gate.
        conditions: the conditions that are not met, and so only what fails the gate.
    """

    verdict: Verdict
    exit_status: int
    headline: Text
    reasons: tuple[Text, ...] = ()
    conditions: tuple[Condition, ...] = Field(default=(), exclude_if=not_)
    rules: Rules | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.verdict == "passed"


@dataclass(frozen=True)
class Concept:
    """A word that a user needs, with its meaning in half a sentence, and the values that reports show of it."""

    name: str
    meaning: str
    values: Mapping[str, str] = field(default_factory=dict)


#: What a run, a case and a comparison can be.
VERDICTS: Mapping[str, str] = {
    "passed": "everything that counts was checked, and nothing in `fail_on` was found",
    "failed": "cases failed, criteria were not met, or something is proven to be worse",
    "unproven": "something that counts could not be evaluated, compared or proven",
    "error": "cases could not be run, and `fail_on` or `max_error_rate` counts it, or the run was interrupted",
}
STATUSES: Mapping[str, str] = {
    "passed": "every metric with a threshold or a verdict passed",
    "failed": "the agent answered, and a metric is below its threshold or failed",
    "error": "the agent gave no answer, or a metric that counts could not be computed",
    "skipped": "no metric applies, or a limit kept a judge that counts from being called",
}
STATES: Mapping[str, str] = {
    "clear": "the first run is not lower than the baseline explains",
    "suspicious": "it may be worse, and nothing ran side by side to tell",
    "cleared": "the first run was lower, but a second run, or the control beside it, shows no drop",
    "proven": "it is worse than the control beside it",
    "unproven": "it may be worse, and what the proof needs is missing",
}
_OF_CASES = {
    "broke": "it is proven to fail more often than with the control beside it",
    "repaired": "it is proven to fail less often; proven on the base branch, or if you ask for it",
    "same": "nothing is proven about it",
    "flaky": "it both passes and fails in the baseline",
    "new": "the baseline does not have it: its own result counts",
    "removed": "the suites no longer have it: if it passed before, the run is `unproven`",
    "changed": "its question or every metric is another one, so it is not compared",
    "quarantined": "`gate.quarantine` leaves it out until a date",
}

CONCEPTS = (
    Concept("suite", "a file of cases, and of the metrics that score their answers"),
    Concept("case", "one task for the agent, which passes or fails", {**STATUSES, **_OF_CASES}),
    Concept("turn", "one question of a case, and its answer: a conversation has several"),
    Concept("metric", "gives an answer a score: by a rule, by comparing texts, or by asking a judge"),
    Concept("score", "how good an answer is, from 0 to 1"),
    Concept("threshold", "the score from which an answer passes"),
    Concept("judge", "a model that scores answers"),
    Concept("agent", "the program, service or function that is evaluated"),
    Concept(
        "run",
        "the agent answers every case, and the gate gives a verdict on the scores; `merge` joins its shards",
        VERDICTS,
    ),
    Concept("iteration", "one try of a case in a new session: with several, the majority decides"),
    Concept("baseline", "the newest ten runs of the base branch, with which a first run is compared"),
    Concept("control", "the base commit's agent, which runs side by side with the changed one to prove a drop"),
    Concept("known failure", "a case that fails in the baseline too: it is listed and blocks nothing"),
    Concept("accepted change", "a removed, edited or worse case, or a lower mean, that somebody has approved"),
    Concept("comparison", "what a change does to the scores: clear, cleared, proven, unproven or suspicious", STATES),
)


_SHARES_OF_ALL = ("tool_calling.", "all_traces_successful")
_TIMES = frozenset({"avg_response_time", "max_response_time"})
_MOST_DECIMALS = 6


def criterion_texts(criterion: Criterion) -> tuple[str, str]:
    """Return the value and the limit of a criterion: ``1.84 s`` and ``at most 2.00 s``.

    Both have enough decimals to differ visibly if they differ.
    """
    value, threshold = criterion.value, criterion.threshold
    if threshold is None:
        return "–" if value is None else _write(criterion, value, 0), "–"
    texts = "–", _limit(criterion, threshold, 0)
    if value is not None:
        for more in range(_MOST_DECIMALS):
            texts = _write(criterion, value, more), _limit(criterion, threshold, more)
            is_exact = not set("<>") & set(texts[1])
            if is_exact and (criterion.met or texts[0] != _write(criterion, threshold, more)):
                break
    return texts


def _limit(criterion: Criterion, threshold: float, more: int) -> str:
    if criterion.name.startswith(_SHARES_OF_ALL):
        return "all"
    return f"{'at least' if _is_quality(criterion) else 'at most'} {_write(criterion, threshold, more)}"


def _write(criterion: Criterion, value: float, more: int) -> str:
    if _is_quality(criterion):
        return f"{value:.{3 + more}f}"
    return seconds(1000 * value, more) if criterion.name in _TIMES else percent(value, more)


def _is_quality(criterion: Criterion) -> bool:
    return criterion.name.startswith("quality.")


def percent(share: float, more: int = 0) -> str:
    """Format a share with one decimal or ``more``. Only a share of 1 is 100.0 %, and only 0 is 0.0 %."""
    decimals = 1 + more
    text, least = f"{100 * share:.{decimals}f}", 10.0**-decimals
    if float(text) == 100 and share < 1:
        return f">{100 - least:.{decimals}f} %"
    return f"<{least:.{decimals}f} %" if float(text) == 0 and share > 0 else f"{text} %"


def seconds(milliseconds: float, more: int = 0) -> str:
    """Format a latency: ``840 ms``, ``12.30 s``, with ``more`` decimals if needed."""
    if 0 < milliseconds < 0.5 and not more:
        return "<1 ms"
    if round(milliseconds) < 1000:
        return f"{milliseconds:.{more}f} ms"
    return f"{milliseconds / 1000:,.{2 + more}f} s"
