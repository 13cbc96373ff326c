"""The published data formats of agents: requests, replies, recorded replies and traces."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agenteval.results.case import MOST_USED


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Message(_Document):
    """An earlier turn of the conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class RequestDocument(_Document):
    """One turn as an agent receives it: on standard input, as the body of a POST, or as a function's argument."""

    model_config = ConfigDict(extra="forbid")

    input: str = Field(description="text of the turn")
    case: str = Field(description="name of the case")
    turn: int = Field(ge=0, description="number of the turn, from 0")
    session: str = Field(description="id of the conversation, the same in all its turns")
    history: list[Message] = Field(description="earlier turns of the conversation")
    files: list[str] = Field(description="absolute paths of the turn's files")
    config: dict[str, Any] = Field(description="`config` of the agent in agenteval.yaml")
    context: dict[str, Any] = Field(description="`context` of the case, for AgentCI suites")


class CallDocument(_Document):
    """A tool call."""

    name: str
    args: Any = Field(None, description="arguments by name, or in order")
    result: Any = Field(None, description="what the tool returned")
    error: Any = Field(None, description="error of the call, if it failed")
    duration_ms: float | None = Field(None, description="milliseconds")


class UsageDocument(_Document):
    """Token usage and cost of an answer."""

    input_tokens: int | None = Field(None, ge=0, le=MOST_USED)
    output_tokens: int | None = Field(None, ge=0, le=MOST_USED)
    cost_usd: float | None = Field(None, ge=0, le=MOST_USED, description="US dollars")


class ReplyDocument(_Document):
    """A full reply; plain text is an answer too. Other keys are metadata."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"anyOf": [{"required": ["response"]}, {"required": ["error"]}]}
    )

    response: Any = Field(None, description="the answer; a value other than text becomes JSON text")
    tool_calls: list[CallDocument] | None = Field(None, description="in chronological order")
    retrieval_context: list[Any] | str | None = Field(None, description="retrieved passages")
    usage: UsageDocument | None = None
    metadata: dict[str, Any] | None = None
    error: Any = Field(None, description="why there is no answer; null, false and empty values are no errors")


class RecordingDocument(ReplyDocument):
    """One line of a replay file: a reply or an error, with its case, turn and iteration."""

    case: str = Field(description="name or id of the case")
    turn: int = Field(0, ge=0, description="number of the turn, from 0")
    iteration: int = Field(0, ge=0, description="number of the iteration, from 0")
    latency_ms: float | None = Field(None, ge=0, le=MOST_USED, description="milliseconds")


class TraceDocument(_Document):
    """One line of recorded traces for `--traces`; rules may name further keys by their path."""

    input: Any = Field(description="the question")
    output: Any = Field(description="the answer; null without an answer")
    trace_id: str | int | None = None
    iteration: int | None = Field(None, ge=0, description="number of the iteration, from 0")
    persona: str | None = Field(None, description="persona of the simulated user")
    duration_ms: float | None = Field(None, ge=0, le=MOST_USED, description="milliseconds")
    success: bool | None = Field(None, description="whether the agent succeeded; default: `status` or `error`")
