"""Keys of HTTP agents: the address, and the form of requests and replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval.core.urls import display_url
from agenteval.suite.reply_keys import REPLY_KEYS, Reply, Response, ResponsePath, reply_options
from agenteval.suite.request_template import check_template, missing_config, placeholders

Method = Literal["POST", "PUT", "PATCH", "GET"]
#: Published formats of requests and replies; ``agents/http/shapes`` has a module for each.
ShapeName = Literal["openai-chat", "openai-responses", "anthropic-messages", "langserve", "ag-ui"]

#: Keys for requests and replies of other forms than the agent protocol.
FOREIGN_KEYS = ("method", "shape", "body", *REPLY_KEYS)

# Only the path and the query may depend on a turn, so that no input chooses the server.
_ADDRESS = re.compile(r"https?://[^\s/?#{}]+(?:[/?]|$)", re.IGNORECASE)


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid")


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
