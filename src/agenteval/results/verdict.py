"""The gate's verdict, as results.json records it."""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from agenteval.results.values import ResultsModel, Text

#: The only verdicts. Outputs, comment, check run, results.json and terminal use these words.
Verdict = Literal["passed", "failed", "unproven", "error"]
#: Who can mend something: the author of the change, or the operator of judge, budget and confirmation run.
MendedBy = Literal["change", "outside"]
PointKind = Literal[
    "cases", "metric", "scores", "errors", "confirmation", "budget", "time", "nothing", "part", "rules", "baseline"
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
    # Omitted if empty.
    details: tuple[Text, ...] = Field(default=(), exclude_if=not_)
    mended_by: MendedBy


class Rules(ResultsModel):
    """The rules of a decision. In a file that somebody else wrote, they are only a claim.

    Attributes:
        fail_on: the kinds of problems that failed the gate.
        max_error_rate: share of cases that could end in an error.
        quarantine: ids of the cases that did not count.
    """

    fail_on: tuple[str, ...]
    max_error_rate: float
    quarantine: tuple[Text, ...] = ()


class Condition(ResultsModel):
    """A condition of the gate that a run does not meet.

    Attributes:
        found: what was found: ``2 of 5 cases broke``.
        rule: the condition, as the configuration writes it: ``fail-on: regressions``; may be empty.
        about: the part of the reports that tells more.
    """

    found: Text
    rule: Text = Field(default="", exclude_if=not_)
    about: Literal["cases", "metrics", "resources", "criteria", "run"] = "run"

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
        rules: the rules that it followed.
    """

    verdict: Verdict
    exit_status: int
    headline: Text
    reasons: tuple[Text, ...] = ()
    # Omitted if empty.
    conditions: tuple[Condition, ...] = Field(default=(), exclude_if=not_)
    rules: Rules | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.verdict == "passed"
