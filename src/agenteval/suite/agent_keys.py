"""Keys that describe how an agent is asked, and where the parts of its replies are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from agenteval.core.escape import display_url
from agenteval.core.text import choices, text_of
from agenteval.suite.forms import parse_path

#: Placeholders, and what they insert.
PLACEHOLDERS: Mapping[str, str] = {
    "input": "the text of the turn, after the texts of its files",
    "messages": "the conversation with this turn: a list of `role` and `content`",
    "history": "the conversation before this turn: a list of `role` and `content`",
    "session": "id of the conversation",
    "case": "name of the case",
    "turn": "number of the turn, from 0",
    "files": "absolute paths of the turn's files",
    "config": "the agent's `config`; `{config.key}` is one value of it",
    "context": "the `context` of the case; `{context.key}` is one value of it",
}
_MAPPINGS = ("config", "context")
# Doubled braces keep a placeholder as it is written.
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")


def check_template(template: Any) -> None:
    """Check the placeholders of a template, and that JSON can express it."""
    for name in placeholders(template):
        first, _, rest = name.partition(".")
        if first not in PLACEHOLDERS or (rest and first not in _MAPPINGS):
            known = [*PLACEHOLDERS, *(f"{key}.KEY" for key in _MAPPINGS)]
            literal = f"{{{{{name}}}}} is sent as {{{name}}}"
            raise ValueError(f"{{{name}}} is not a placeholder{choices(name, known, 'known')}; {literal}")
    try:
        json.dumps(template, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON cannot express it: {error}") from None


def missing_config(template: Any, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the placeholders ``config.key`` whose key is not in the configuration of the agent."""
    for name in placeholders(template):
        if name.startswith("config."):
            try:
                value_of(name, {"config": config})
            except KeyError:
                yield name


def placeholders(template: Any) -> Iterator[str]:
    """Yield the names of the placeholders in a template."""
    if isinstance(template, str):
        yield from (match[2] for match in _PLACEHOLDER.finditer(template) if match[2])
    elif isinstance(template, Mapping):
        for item in template.values():
            yield from placeholders(item)
    elif isinstance(template, list | tuple):
        for item in template:
            yield from placeholders(item)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders replaced.

    A text that is one placeholder becomes its value, of whatever type; in a longer text, values become text.
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole[2]:
            return value_of(whole[2], values)
        return filled_text(template, values, text_of)
    if isinstance(template, Mapping):
        return {str(key): filled(item, values) for key, item in template.items()}
    if isinstance(template, list | tuple):
        return [filled(item, values) for item in template]
    return template


def filled_text(template: str, values: Mapping[str, Any], written: Callable[[Any], str]) -> str:
    """Return a text with its placeholders replaced."""
    return _PLACEHOLDER.sub(
        lambda match: f"{{{match[1]}}}" if match[1] else written(value_of(match[2], values)), template
    )


def value_of(name: str, values: Mapping[str, Any]) -> Any:
    """Return the value of a placeholder."""
    value: Any = values
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise KeyError(name)
        value = value[step]
    return value


#: What the input of a turn replaces.
INPUT = "{input}"

# An argument, or the value of an option, that is a name in braces.
_INPUT_PLACEHOLDER = re.compile(r"(?:--?[\w-]+=)?(?:\{|\{\{\s*)([A-Za-z_][\w.]*)(?:\}|\s*\}\})")
# Names that people give to what a request contains; HTTP agents have placeholders for all of it.
_NAMES = "|".join((*PLACEHOLDERS, "prompt", "question", "query", "message"))
_MEANT = re.compile(rf"(?<!\$)(?!{re.escape(INPUT)})\{{\{{?\s*(?:{_NAMES})(?:\.[\w.]*)?\s*\}}")
_INTERPRETER = re.compile(
    r"(ba|da|k|z|c|tc|fi)?sh|su|cmd(\.exe)?|powershell|pwsh|python[\d.]*|pypy[\d.]*|node|deno|bun|perl|ruby|php|lua"
)
# An option that program text follows, or that ends with it.
_CODE = re.compile(r"-[a-zA-Z]*[ceEpr]|/[cC]|--(eval|print|command|run)|-Command|eval")
_CODE_INSIDE = re.compile(r"-[a-zA-Z]*[ceE][^=\w]|--(eval|print|command|run)=")
# Options of interpreters whose value is the next argument.
_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "-W", "-X", "-I", "-M", "-r", "--require", "--import", "--loader"})


def takes_input(arguments: Sequence[str]) -> bool:
    """Return whether a program gets the input as an argument."""
    return any(INPUT in argument for argument in arguments)


def with_input(arguments: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the arguments with the input; an argument stays one argument, whatever the input contains."""
    return tuple(argument.replace(INPUT, text) for argument in arguments)


def check_arguments(arguments: Sequence[str]) -> None:
    """Check the placeholders of a program's arguments.

    Raises:
        ValueError: a placeholder is unknown, or the input would become the program or part of a program text.
    """
    if arguments and INPUT in arguments[0]:
        raise ValueError(f"the program {arguments[0]!r} must not depend on the input; {INPUT} is for its arguments")
    for index, argument in enumerate(arguments):
        if _is_code(arguments, index):
            if INPUT in argument:
                raise ValueError(
                    f"{INPUT} must not be part of program text, where the input could run commands; "
                    f'pass it as a separate argument, for instance [sh, -c, \'tool "$1"\', sh, "{INPUT}"]'
                )
            continue
        whole = _INPUT_PLACEHOLDER.fullmatch(argument)
        if f"{{{INPUT}}}" in argument or _MEANT.search(argument) or (whole and f"{{{whole[1]}}}" != INPUT):
            raise ValueError(
                f"{argument!r} contains an unknown placeholder; only {INPUT} is replaced. "
                "A program that needs more than the input reads the request as JSON from standard input"
            )


def _is_code(arguments: Sequence[str], index: int) -> bool:
    if index > 1 and _CODE.fullmatch(arguments[index - 1]) and _is_for_interpreter(arguments, index - 1):
        return True
    return bool(_CODE_INSIDE.match(arguments[index])) and _is_for_interpreter(arguments, index)


def _is_for_interpreter(arguments: Sequence[str], index: int) -> bool:
    """Return whether an option belongs to an interpreter: only options and their values are between the two."""
    for position in range(index - 1, -1, -1):
        argument = arguments[position]
        if _INTERPRETER.fullmatch(PurePath(argument).name):
            return True
        is_value = position > 0 and arguments[position - 1] in _WITH_VALUE
        if not (argument.startswith(("-", "+", "/")) or is_value):
            return False
    return False


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


Method = Literal["POST", "PUT", "PATCH", "GET"]
#: Published formats of requests and replies; ``agents/http_shapes.py`` has all of them.
ShapeName = Literal["openai-chat", "openai-responses", "anthropic-messages", "ag-ui"]

_OF_LANGSERVE = (
    'write `body: {input: "{input}"}` and `response: {answer: output.content, tool_calls: output.tool_calls}`, '
    "with the paths of your chain"
)

#: Keys for requests and replies of other forms than the agent protocol.
FOREIGN_KEYS = ("method", "shape", "body", *REPLY_KEYS)

# Only the path and the query may depend on a turn, so that no input chooses the server.
_ADDRESS = re.compile(r"https?://[^\s/?#{}]+(?:[/?]|$)", re.IGNORECASE)


class HttpKeys(_Keys):
    """Keys of an address that requests are sent to."""

    http: str | None = Field(None, description="URL that requests are sent to")
    url: str | None = Field(None, description="the same as `http`")
    headers: dict[str, str] | None = Field(None, repr=False, description="http: request headers")
    method: Method | None = Field(None, description="http: POST (default), PUT, PATCH, or GET without a body")
    shape: ShapeName | None = Field(None, description="http: published form of requests and replies")
    body: Any = Field(None, description="http: JSON to send, with placeholders such as {input}")
    reply: Reply = None
    response: Response = None
    response_path: ResponsePath = None

    @field_validator("http", "url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        if value is None:
            return value
        if not re.match(r"https?://[^\s/]", value):
            raise ValueError(f"{display_url(value)!r} is not an http:// or https:// address")
        if any(True for _ in placeholders(value)) and not _ADDRESS.match(value):
            raise ValueError("placeholders may follow the host only, as in https://host/chat?q={input}")
        check_template(value)
        return value

    @field_validator("shape", mode="before")
    @classmethod
    def _shape(cls, value: Any) -> Any:
        if value == "langserve":
            raise ValueError(f"'langserve' is no shape; {_OF_LANGSERVE}")
        return value

    @field_validator("body")
    @classmethod
    def _body(cls, value: Any) -> Any:
        check_template(value)
        return value

    @model_validator(mode="after")
    def _request(self) -> HttpKeys:
        problem = request_problem(
            method=self.method,
            url=self.http or self.url or "",
            body=self.body,
            shape=self.shape,
            config=getattr(self, "config", {}),
        )
        if problem:
            raise ValueError(problem)
        return self


def request_problem(
    *, method: str | None, url: str, body: Any, shape: str | None, config: Mapping[str, Any]
) -> str | None:
    """Return why the parts of a request do not fit together; ``None`` if they do."""
    if method == "GET" and (body is not None or shape is not None):
        return f"a GET request has no body, so `{'body' if body is not None else 'shape'}` cannot be used with it"
    if method == "GET" and not any(name in {"input", "messages"} for name in placeholders(url)):
        return "a GET request sends the question in its address, as in https://host/ask?q={input}"
    if shape is not None and body is not None and not isinstance(body, Mapping):
        return "with `shape`, `body` is a mapping of further keys of the request"
    missing = dict.fromkeys(missing_config([url, body], config))
    if missing:
        names = ", ".join(f"{{{name}}}" for name in missing)
        return f"{names}: the agent's `config` has no such key"
    return None


def http_options(keys: Any) -> dict[str, Any]:
    """Return the options of an agent from its keys."""
    optional = {"method": keys.method, "shape": keys.shape, "body": keys.body}
    given = {name: value for name, value in optional.items() if value is not None}
    return {"headers": keys.headers or {}, **given, **reply_options(keys)}
