"""The gate's verdict, as results.json records it, and the words of verdicts, cases and criteria."""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from agenteval.core.records import dataclass
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


WordKind = Literal["verdict", "comparison", "status", "case", "term"]


@dataclass(frozen=True)
class Word:
    """A word of the reports.

    Attributes:
        meaning: half a sentence, with code in backticks.
    """

    name: str
    kind: WordKind
    meaning: str
    also: tuple[str, ...] = ()


WORDS = (
    Word("passed", "verdict", "everything that counts was checked, and nothing in `fail_on` was found"),
    Word("failed", "verdict", "cases failed, criteria were not met, or something is proven to be worse"),
    Word("unproven", "verdict", "something that counts was not evaluated, compared or proven"),
    Word(
        "error",
        "verdict",
        "cases could not be run, and `fail_on` or `max_error_rate` counts it, or it was interrupted",
    ),
    Word("clear", "comparison", "the first run is not lower than the pool explains"),
    Word("suspicious", "comparison", "it may be worse, and nothing ran side by side to tell: `agenteval prove` does"),
    Word("cleared", "comparison", "the first run looked worse, and a second run, or the base beside it, was not"),
    Word("proven", "comparison", "it is worse than the base beside it"),
    Word("unproven", "comparison", "it may be worse, and what the proof needs is missing"),
    Word("passed", "status", "every metric with a threshold or a verdict passed"),
    Word("failed", "status", "the agent answered, and a metric is below its threshold or failed"),
    Word(
        "error",
        "status",
        "the agent gave no answer, or a metric that counts could not be computed",
        ("could not be run", "could not be evaluated"),
    ),
    Word("skipped", "status", "no applicable metric, or a judge that counts was not called because of a limit"),
    Word("broke", "case", "it is proven to fail more often than on the base beside it"),
    Word("repaired", "case", "on the base branch, or on request: it is proven to fail less often"),
    Word("suspicious", "case", "it fails more often than in the pool, and that is neither proven nor cleared"),
    Word("same", "case", "nothing is proven about it"),
    Word("flaky", "case", "it both passes and fails in the pool"),
    Word("known failure", "case", "it fails in the baseline too: it is listed and does not fail the gate"),
    Word("new", "case", "the baseline does not have it: its own result counts"),
    Word("removed", "case", "the baseline has it and the suites do not: a case that passed makes the run `unproven`"),
    Word("changed", "case", "its question or every metric is another one, so it is not compared", ("rules changed",)),
    Word("quarantined", "case", "`quarantine` of the gate leaves it out until a date"),
    Word("accepted", "case", "somebody accepted its change, so the change does not count"),
    Word("baseline", "term", "the run of the base branch that a run is compared with, with its pool"),
    Word("pool", "term", "the scores of the last ten runs of the base branch"),
    Word("anchor", "term", "the commit since which the base branch is the same: its last proven or accepted change"),
    Word("long look", "term", "the base branch side by side with its anchor, to find a slow decline"),
    Word("pass", "term", "one iteration of every case in a separate session"),
    Word("suspicion", "term", "a first run is lower than the pool explains: further passes prove or clear it"),
    Word("side by side", "term", "pairs of passes, one of the change and one of the base, in a drawn order"),
    Word("p", "term", "how often chance alone makes such a drop, from 0 to 1", ("p-value",)),
    Word("interval", "term", "the differences of the means that the runs do not exclude"),
    Word("gating", "term", "of a metric: it can fail a case; an informational one is only compared"),
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
