"""The published form of what agents get and give, of recorded replies and of traces; others read them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Message(_Document):
    """A turn before this one, from either side."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class RequestDocument(_Document):
    """One turn as an agent gets it: on standard input, as the body of a POST, or as the argument of a function."""

    model_config = ConfigDict(extra="forbid")

    input: str = Field(description="what is asked")
    case: str = Field(description="name of the case")
    turn: int = Field(ge=0, description="number of the turn, from 0")
    session: str = Field(description="the same in all turns of one conversation, and in no other")
    history: list[Message] = Field(description="the turns before this one")
    files: list[str] = Field(description="absolute paths of the files that belong to the input")
    config: dict[str, Any] = Field(description="`config` of the agent in agenteval.yaml")
    context: dict[str, Any] = Field(description="`context` of the case, for AgentCI suites")


class CallDocument(_Document):
    """One call of a tool."""

    name: str
    args: Any = Field(None, description="arguments by name, or in order")
    result: Any = Field(None, description="what the tool returned")
    error: Any = Field(None, description="what went wrong, if something did")
    duration_ms: float | None = Field(None, description="milliseconds")


class UsageDocument(_Document):
    """What an answer used."""

    input_tokens: int | None = Field(None, ge=0)
    output_tokens: int | None = Field(None, ge=0)
    cost_usd: float | None = Field(None, ge=0, description="US dollars")


class ReplyDocument(_Document):
    """An answer in full; plain text, or JSON without `response`, is an answer too. Further keys are metadata."""

    response: Any = Field(description="the answer; what is no text becomes JSON text")
    tool_calls: list[CallDocument] | None = Field(None, description="in the order of time")
    retrieval_context: list[Any] | str | None = Field(None, description="passages that were found")
    usage: UsageDocument | None = None
    metadata: dict[str, Any] | None = None


class RecordingDocument(ReplyDocument):
    """One line of a replay file: a reply or an error, and where it belongs."""

    response: Any = Field(None, description="the answer; needed where there is no error")
    case: str = Field(description="name or id of the case")
    turn: int = Field(0, ge=0, description="number of the turn, from 0")
    iteration: int = Field(0, ge=0, description="from 0")
    latency_ms: float | None = Field(None, description="milliseconds")
    error: Any = Field(None, description="why there was no answer")


class TraceDocument(_Document):
    """One line of recorded traces for `--traces`; rules may name further keys by their path."""

    input: Any = Field(description="what was asked")
    output: Any = Field(description="what was answered; null where there was no answer")
    trace_id: str | int | None = None
    iteration: int | None = Field(None, ge=0, description="pass over the inputs, from 0")
    persona: str | None = Field(None, description="who asked")
    duration_ms: float | None = Field(None, ge=0, description="milliseconds")
    success: bool | None = Field(None, description="else `status` or `error` says it")


DOCUMENTS: dict[str, type[BaseModel]] = {
    "request": RequestDocument,
    "reply": ReplyDocument,
    "recording": RecordingDocument,
    "trace": TraceDocument,
}
