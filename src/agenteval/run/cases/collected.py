"""What a run has finished: short ones hold every case, long ones what their reports show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agenteval.results.archive import Archive
from agenteval.results.model import CaseResult, RunUsage, Summary
from agenteval.run.cases.all_cases import AllCases
from agenteval.run.cases.retention import MOST_SHOWN, Outlines
from agenteval.run.cases.run_pool import RunPool
from agenteval.run.cases.store import Retries
from agenteval.run.cases.streamed_cases import StreamedCases
from agenteval.suite.model_agent import KIND as MODEL_AGENT

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.run.plan import Plan

#: A run of more cases does not hold them all.
MOST_IN_MEMORY = MOST_SHOWN


class Collected(Protocol):
    """The cases of a run, under their positions in its plan."""

    @property
    def archive(self) -> Archive:
        """Where the cases are in full."""
        ...

    @property
    def has_pool(self) -> bool:
        """Whether the archive has the run's own entry of the pool."""
        ...

    @property
    def retries(self) -> Retries:
        """How often agents had to be asked again."""
        ...

    def add(self, suite: str, position: int, case: CaseResult, text: str, place: int, /) -> None:
        """A finished case.

        Args:
            suite: path of its suite.
            position: in the plan.
            case: in full.
            text: the same as JSON.
            place: byte of the journal where its line begins.
        """
        ...

    def add_unwritten(self, suite: str, position: int, case: CaseResult, /) -> None:
        """A case that is not in the journal."""
        ...

    def cases(self) -> dict[str, list[CaseResult]]:
        """What is held, by suite path, in the order of the plan."""
        ...

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """What analyses need, by path of each suite that has some."""
        ...

    def summary(self, asked: RunUsage) -> Summary:
        """The run in numbers, with what asking models took."""
        ...


def collected(plan: Plan) -> Collected:
    """What holds the cases of a plan that is to be run.

    Every case is needed in memory where they are compared with others, and for what is said of a run as a whole.
    """
    cases = plan.cases
    # What a model of ours answered is counted with the models.
    metered = frozenset(item.case.id for item in cases if item.agent.kind == MODEL_AGENT)
    evaluated = any(item.suite.evaluation is not None for item in cases)
    if plan.compared or evaluated or len(cases) <= MOST_IN_MEMORY:
        return AllCases(cases, plan.journal, metered)
    return StreamedCases(plan.journal, Outlines(plan.named), RunPool(cases), metered)
