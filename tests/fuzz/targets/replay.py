"""Recorded answers in every format that is read. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.agents.base import Reply
from agenteval.agents.recording import RecordedQuestion
from agenteval.agents.replay_agent import read_recording
from agenteval.core.errors import ConfigError

_ASKED = (
    RecordedQuestion("agent.yaml::capital", "capital", ("What is the capital of France?",)),
    RecordedQuestion("x", "x", ()),
)


def target(data: bytes) -> None:
    for name in ("recorded.jsonl", "recorded.json"):
        with suppress(ConfigError):
            recording = read_recording(as_file(data, f"replay/{name}"))
            recording.notices(_ASKED)
            for asked in _ASKED:
                for iteration in recording.find(asked).values():
                    for turn in iteration.values():
                        answer = turn.answer.response if isinstance(turn.answer, Reply) else turn.answer
                        assert isinstance(answer, str)
