"""Keys that describe the replies of an agent: where their parts are, or that all of a reply is the answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from agenteval.suite.json_path import parse_path

#: The keys of this module.
REPLY_KEYS = ("reply", "response", "response_path")


def _path(text: str) -> str:
    parse_path(text)
    return text


Path = Annotated[str, AfterValidator(_path)]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ToolCallPaths(_Keys):
    """Where the tool calls of a reply are, if they have no known form."""

    path: Path = Field(description="path of the list of calls")
    name: Path = Field("name", description="path of the tool's name in an item; items without it are no calls")
    args: Path | None = Field(None, description="path of the arguments in an item; JSON text is parsed")
    result: Path | None = Field(None, description="path of the result in an item")
    error: Path | None = Field(None, description="path of the error of a failed call in an item")


def _written_as(value: Any) -> str:
    """Return the name of the type that a value is checked against, so that a mistake is one problem."""
    return str.__name__ if isinstance(value, str) else ToolCallPaths.__name__


_ToolCalls = Annotated[
    Annotated[Path, Tag(str.__name__)] | Annotated[ToolCallPaths, Tag(ToolCallPaths.__name__)],
    Discriminator(_written_as),
]


class UsagePaths(_Keys):
    """Where the token usage and the cost of a reply are."""

    input_tokens: Path | None = Field(None, description="path of the number of input tokens")
    output_tokens: Path | None = Field(None, description="path of the number of output tokens")
    cost_usd: Path | None = Field(None, description="path of the cost in US dollars")


class ResponsePaths(_Keys):
    """Where the parts of a reply of another form are; of a stream, in its events."""

    answer: Path | None = Field(None, description="path of the answer; texts of a list or of a stream are joined")
    tool_calls: _ToolCalls | None = Field(
        None, description="path of the tool calls, or a mapping with the paths of their parts"
    )
    retrieval_context: Path | None = Field(None, description="path of the retrieved passages")
    usage: UsagePaths | None = Field(None, description="paths of token usage and cost")
    error: Path | None = Field(None, description="path of the agent's error; a value there makes the case an error")


# Fields of several kinds of agents, which keep their order of keys.
Reply = Annotated[
    Literal["text"] | None,
    Field(description="`text`: the whole output is the answer; default: a JSON object is a reply with `response`"),
]
Response = Annotated[ResponsePaths | None, Field(description="paths of the parts of a reply of another form")]
ResponsePath = Annotated[Path | None, Field(description="the same as `response.answer`")]


def reply_options(keys: Any) -> dict[str, Any]:
    """Return the options of an agent from these keys."""
    paths = None if keys.response is None else keys.response.model_dump(exclude_none=True)
    options = {"reply": keys.reply, "response": paths, "response_path": keys.response_path}
    return {name: value for name, value in options.items() if value is not None}


def reply_problem(keys: Any) -> str | None:
    """Return why these keys do not fit together; ``None`` if they do."""
    if keys.response_path is not None and keys.response is not None and keys.response.answer is not None:
        return "give `response_path` or `response.answer`, not both"
    if keys.reply is not None:
        for key in ("response", "response_path", "shape"):
            if getattr(keys, key) is not None:
                return f"give `reply: text`, for which the whole output is the answer, or `{key}`, not both"
    return None
