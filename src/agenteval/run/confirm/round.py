"""The cases of one request of a confirmation: both sides, case by case, in separate sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agenteval.compare.regression.model import Request, Side
from agenteval.compare.run_scores import pool_case
from agenteval.run.plan import PlannedCase, with_session
from agenteval.run.rescore import rescorable
from agenteval.run.resolve.control import ControlCase
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import OVERALL, AgentSpec, Case, Fingerprints, MetricConfig


@dataclass(frozen=True)
class Round:
    """The runs of one request.

    Attributes:
        session: begins the names of its sessions; no other request of any run has the same.
    """

    request: Request
    session: str
    _agents: dict[tuple[int, Side], AgentSpec] = field(default_factory=dict, repr=False)

    def planned(
        self, cases: Sequence[PlannedCase], control: Mapping[str, ControlCase], done: Mapping[str, int]
    ) -> Iterator[PlannedCase]:
        """Yield the cases in the order in which they run: P C, C P, P C …

        Args:
            control: the cases of the control by id; a case that asks something else there is left out.
            done: iterations so far by case id. Numbers continue after them, so that no two samples are the same.
        """
        wanted = [item for item in cases if self.request.iterations.get(item.case.id)]
        for place, item in enumerate(wanted):
            iterations = self.request.iterations[item.case.id]
            first = done.get(item.case.id, item.iterations)
            again = replace(item, iterations=iterations, unneeded=0, first_iteration=first)
            agent = self._agent(item.agent, "current")
            sides = {"current": self._marked(again, "current", agent)}
            there = control.get(item.case.id)
            case = comparable(there.case, item.case) if there is not None else None
            if there is not None and case is not None:
                # The change may have moved the suite; its settings are known by its path there.
                suite = replace(there.suite, path=item.suite.path)
                same = replace(again, suite=suite, case=case, beside=agent)
                sides["control"] = self._marked(same, "control", self._agent(there.agent, "control"))
            order = self.request.sides[::-1] if place % 2 else self.request.sides
            yield from (sides[side] for side in order if side in sides)

    def prefix(self, side: Side) -> str:
        """Return the beginning of the case ids of a side: a round can contain a case twice."""
        return f"{self.session}.{side}:"

    def _marked(self, item: PlannedCase, side: Side, agent: AgentSpec) -> PlannedCase:
        case = replace(item.case, id=f"{self.prefix(side)}{item.case.id}")
        # A recording contains the iterations of the first run only.
        first = 0 if agent.kind == REPLAY else item.first_iteration
        return replace(item, case=case, agent=agent, first_iteration=first, origin=item.case.id)

    def _agent(self, agent: AgentSpec, side: Side) -> AgentSpec:
        # Cases that share an agent must still share it, because each agent object is started once.
        key = (id(agent), side)
        if key not in self._agents:
            self._agents[key] = with_session(agent, f"{self.session}.{side}")
        return self._agents[key]


def shared_metrics(theirs: Case, ours: Case) -> frozenset[str] | None:
    """Return the metrics that can score both the answers of the control and those of the agent under test.

    These are the metrics with the same configuration, and those that need nothing but an answer.

    Returns:
        ``None`` if the two ask different questions, or share no metric.
    """
    before, now = theirs.fingerprints, ours.fingerprints
    shared = _unchanged(before, now) | rescorable(ours, pool_case(before, {}))
    return None if before.question != now.question or (now.metrics and not shared) else shared


def comparable(theirs: Case, ours: Case) -> Case | None:
    """Return a case of the control with the metrics that it shares with the case under test.

    A metric with another configuration or expected answer is that of the case under test, so both are scored by the
    same rules.

    Returns:
        ``None`` if the two ask different questions, or share no metric.
    """
    shared = shared_metrics(theirs, ours)
    if shared is None:
        return None
    same = _unchanged(theirs.fingerprints, ours.fingerprints)

    def chosen(before: Iterable[MetricConfig], now: Iterable[MetricConfig]) -> tuple[MetricConfig, ...]:
        kept = (metric for metric in before if metric.id in same)
        return (*kept, *(metric for metric in now if metric.id in shared - same))

    turns = tuple(
        # A metric that both share expects the same of the turn.
        replace(
            turn,
            ground_truth=own.ground_truth,
            retrieval_context=own.retrieval_context,
            config=own.config,
            metrics=chosen(turn.metrics, own.metrics),
        )
        for turn, own in zip(theirs.turns, ours.turns, strict=True)
    )
    aggregate = ours.aggregate if OVERALL in shared else None
    return replace(theirs, turns=turns, metrics=chosen(theirs.metrics, ours.metrics), aggregate=aggregate)


def _unchanged(before: Fingerprints, now: Fingerprints) -> frozenset[str]:
    return frozenset(metric for metric, content in now.metrics.items() if before.metrics.get(metric) == content)
