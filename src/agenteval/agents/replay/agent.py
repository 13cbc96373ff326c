"""An agent that repeats recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.agents.base import Reply, Request, as_text
from agenteval.agents.replay.recording import RecordedCase, RecordedQuestion, RecordedTurn, Recording
from agenteval.core.errors import AgentError, ConfigError, agent_problem
from agenteval.suite.case_ids import excerpt
from agenteval.suite.model import AgentSpec, Case

_USER = "user"
_MASK = "***"


class ReplayAgent:
    """Answers from a recording, by case, turn and iteration."""

    def __init__(self, spec: AgentSpec) -> None:
        self._path = Path(str(spec.target))
        self._where = spec.where
        self._recording: Recording | None = None
        self._found: dict[str, RecordedCase] = {}

    async def start(self) -> None:
        """Read the recording."""
        from agenteval.agents.replay.formats import read_recording

        if not self._path.exists():
            raise ConfigError(agent_problem(self._where, f"recording {self._path} does not exist"))
        self._recording = read_recording(self._path)

    def expect(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Look up the cases of the run.

        Returns:
            Notices about the recording.
        """
        if self._recording is None:
            return ()
        if self._recording.is_run:
            self._found = {asked.case_id: self._recording.find(asked) for asked in map(_case_asked, cases)}
        return self._recording.notices(map(_case_asked, cases))

    def iterations(self, case_id: str) -> int | None:
        """Return the number of recorded iterations of a case; 1 without any, so that one error reports it."""
        is_run = self._recording is not None and self._recording.is_run
        return max(self._found.get(case_id, ()), default=0) + 1 if is_run else None

    def session(self) -> ReplayAgent:
        """Return the agent itself: recorded answers need no state."""
        return self

    async def send(self, request: Request) -> Reply:
        """Return the recorded answer."""
        asked = _asked(request)
        case = self._found.get(request.case_id) or self._find(RecordedQuestion(request.case_id, request.case, asked))
        iteration = case.get(request.iteration, {})
        turn = iteration.get(request.turn)
        if turn is None:
            raise AgentError(f"{self._path.name} has no reply for {self._what_is_missing(request, case)}")
        for number, question in enumerate(asked):
            _check_question(self._path.name, request.case, number, iteration.get(number), question)
        if isinstance(turn.answer, str):
            raise AgentError(turn.answer)
        return turn.answer

    async def end(self) -> None:
        """Do nothing: a session has no resources."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _find(self, asked: RecordedQuestion) -> RecordedCase:
        return self._recording.find(asked) if self._recording is not None else {}

    def _what_is_missing(self, request: Request, case: RecordedCase) -> str:
        name = f"case {request.case!r}"
        if not case:
            return (
                f"{name}; record it: agenteval run -k {request.case!r} with the agent itself, "
                "and replay the results.json of that run"
            )
        if request.iteration not in case:
            recorded = len(case)
            times = "once" if recorded == 1 else f"{recorded} times"
            return (
                f"{name}, turn {request.turn}, iteration {request.iteration}: it was recorded {times}; "
                f"ask for no more with --iterations or in the suite, or record it again"
            )
        return f"{name}, turn {request.turn}, iteration {request.iteration}: this turn was not recorded"


def _case_asked(case: Case) -> RecordedQuestion:
    """Return the question of a case, with all its turns."""
    return RecordedQuestion(case.id, case.name, tuple(turn.input for turn in case.turns))


def _asked(request: Request) -> tuple[str, ...]:
    """Return the question up to and including this turn."""
    return (*(said["content"] for said in request.history if said["role"] == _USER), request.input)


def _check_question(file: str, case: str, number: int, turn: RecordedTurn | None, question: str) -> None:
    """Check that the inputs of a turn and of its recording are equal; earlier turns affect later answers."""
    if turn is None or turn.input is None or _same(turn.input, question):
        return
    raise AgentError(
        f"{file}: turn {number} of case {case!r}: the recorded question differs ({excerpt(turn.input)!r}); "
        "record the case again"
    )


def _same(recorded: str, asked: str) -> bool:
    """Return whether two inputs are equal; in results, secrets are masked."""
    wanted = as_text(asked).strip()
    first, *rest = recorded.strip().split(_MASK)
    if not rest:
        return first == wanted
    if not wanted.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = wanted.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return wanted.endswith(rest[-1]) and len(wanted) - len(rest[-1]) >= at
