"""What a change does to the suites and rules by which it is judged, as results.json records it."""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from agenteval.results.values import ResultsModel, Text

DifferenceKind = Literal[
    "removed", "renamed", "edited", "new", "case", "metric", "agent", "setting", "workflow", "rules"
]
#: What a difference means for this run.
#: unproven: it takes something away from the comparison. base: the version of the base commit decides.
#: paired: the case is compared under its new name. absolute: nothing to compare with, so the case itself decides.
#: listed: it cannot be checked here.
Effect = Literal["unproven", "base", "paired", "absolute", "listed"]


class Acceptance(ResultsModel):
    """Who accepted a difference, and why.

    Attributes:
        author: author of the line in git, or login of the person on the CI host; empty if it is unknown.
    """

    author: Text = ""
    reason: Text


class Difference(ResultsModel):
    """One difference between the suites and rules of the base commit and those of the change.

    Attributes:
        kind: ``case`` is a property of a case, such as its number of iterations. ``agent`` is a property of an
            agent or of a tool under test. ``rules``: the base commit's suites and rules did not judge the run;
            ``after`` is why.
        case: id of the case; ``None`` if the difference concerns several cases, or none.
        cases: number of cases that it concerns.
        metric: id of the metric.
        setting: name of the setting, or of the property of the case or metric; the path of a workflow
            or of an action that it uses.
        before: the value in the base commit; ``None`` if it has none.
        after: the value in the change.
        effect: what decides in this run.
        loosens: whether the merge makes it easier to pass.
        fingerprint: of the case that can be accepted.
        accepted_by: who accepted it.
    """

    kind: DifferenceKind
    case: Text | None = None
    cases: int = Field(default=0, exclude_if=not_)
    metric: Text | None = None
    setting: Text | None = None
    before: Text | None = None
    after: Text | None = None
    effect: Effect
    loosens: bool = Field(default=False, exclude_if=not_)
    fingerprint: str = Field(default="", exclude_if=not_)
    accepted_by: Acceptance | None = None
