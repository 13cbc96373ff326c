from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import agent_spec, request

from agenteval.agents.base import Reply, Request
from agenteval.core.errors import TransientAgentError
from agenteval.run.conversation import Attachments, CaseDeadline, Conversations
from agenteval.run.progress import Progress, Retry, Step


class _Session:
    """Fails once, and asks for a retry without a wait."""

    def __init__(self) -> None:
        self.calls = 0

    async def send(self, request: Request) -> Reply:
        self.calls += 1
        if self.calls == 1:
            raise TransientAgentError("503 Service Unavailable", retry_after_s=0.0)
        return Reply(response="here")

    async def end(self) -> None: ...


@dataclass
class _Seen(Progress):
    steps: list[tuple[str, str]] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)

    def began(self, step: Step) -> None:
        self.steps.append((step.case, step.what))

    def retrying(self, step: Step, retry: Retry) -> None:
        self.retries.append(retry)

    def ended(self, step: Step) -> None:
        self.steps.append(("ended", step.case))


def test_the_progress_learns_of_turns_and_retries(tmp_path: Path) -> None:
    seen = _Seen()
    spec = agent_spec("http", "http://127.0.0.1:9/", tmp_path, retries=4)
    conversations = Conversations(spec, Attachments(), progress=seen)
    answer = asyncio.run(
        conversations.ask(_Session(), request(case="shipping", turn=1), CaseDeadline(), exception_is_answer=False)
    )
    assert (answer.retries, answer.error) == (1, None)
    assert seen.steps == [("shipping", "turn 2"), ("ended", "shipping")]
    assert seen.retries == [Retry("503 Service Unavailable", 2, 5, 0.0)]
