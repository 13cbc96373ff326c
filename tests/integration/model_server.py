"""A language model's API on this machine: records whole requests, and answers as a test wants it."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support import listening

from agenteval.core.llm.models import ModelSpec

PROVIDERS = ("openai", "azure_openai", "anthropic", "ollama")
KEY = "sk-0123456789abcdefghijklmnop"
INPUT_TOKENS, OUTPUT_TOKENS = 1000, 200

_NAMES = {
    "openai": "gpt-4.1",
    "azure_openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-6",
    "ollama": "gpt-oss:20b",
}


@dataclass(frozen=True)
class RecordedQuestion:
    """One request; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The last message."""
        text: str = self.body["messages"][-1]["content"]
        return text

    @property
    def embedded(self) -> str | None:
        """The text whose vector is wanted; ``None`` if a chat is."""
        return (
            self.body.get("input", self.body.get("prompt")) if re.search(r"/embed(dings)?(\?|$)", self.path) else None
        )


@dataclass(frozen=True)
class Answer:
    """One reply: JSON unless it is text or bytes; ``status`` 0 closes the connection instead."""

    body: Any = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


HANG_UP = Answer(status=0)
Respond = Callable[[RecordedQuestion], Answer]


@dataclass
class ModelServer:
    """The running server; ``respond`` may be replaced at any time."""

    url: str = ""
    respond: Respond = lambda asked: says(asked, '{"ok": true}')
    asked: list[RecordedQuestion] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, *answers: Answer | str) -> None:
        """Give these answers in turn; the last one from then on. Text is what the model says."""
        left = list(answers)

        def respond(asked: RecordedQuestion) -> Answer:
            with self._lock:
                answer = left.pop(0) if len(left) > 1 else left[0]
            return says(asked, answer) if isinstance(answer, str) else answer

        self.respond = respond

    def model(self, provider: str = "openai", name: str | None = None, **fields: Any) -> ModelSpec:
        """A model that this server plays."""
        values: dict[str, Any] = {
            "temperature": 0.0,
            "endpoint": f"{self.url}/v1" if provider == "openai" else self.url,
            "api_key": None if provider == "ollama" else KEY,
            **fields,
        }
        return ModelSpec(provider, name or _NAMES[provider], **values)

    def handle(self, asked: RecordedQuestion) -> Answer:
        """Record a request and answer it."""
        with self._lock:
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self.respond(asked)
        finally:
            with self._lock:
                self._at_once -= 1


def says(asked: RecordedQuestion, text: str | None, finish: str = "stop", **message: Any) -> Answer:
    """A model's answer, in the form of the provider whose path was asked."""
    if asked.path.startswith("/api/chat"):
        return Answer(
            {
                "model": asked.body["model"],
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": text},
                "done": True,
                "done_reason": finish,
                "prompt_eval_count": INPUT_TOKENS,
                "eval_count": OUTPUT_TOKENS,
            }
        )
    if asked.path.startswith("/v1/messages"):
        return Answer(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": asked.body["model"],
                "content": [] if text is None else [{"type": "text", "text": text}],
                "stop_reason": finish,
                "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
            }
        )
    logprobs = message.pop("logprobs", None)
    return Answer(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked.body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": text, **message},
                    "logprobs": logprobs,
                }
            ],
            "usage": {
                "prompt_tokens": INPUT_TOKENS,
                "completion_tokens": OUTPUT_TOKENS,
                "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
            },
        }
    )


def responds(asked: RecordedQuestion, *output: Mapping[str, Any] | str) -> Answer:
    """An answer of OpenAI's Responses API: texts, and calls as ``{"name": …, "arguments": {…}}``."""
    items: list[dict[str, Any]] = []
    for index, item in enumerate(output):
        if isinstance(item, str):
            content = [{"type": "output_text", "text": item, "annotations": []}]
            items.append({"type": "message", "id": f"m{index}", "role": "assistant", "content": content})
        else:
            arguments = json.dumps(item["arguments"])
            call_id = f"call_{len(asked.body['input'])}_{index}"
            items.append({"type": "function_call", "id": f"f{index}", "call_id": call_id, "name": item["name"]})
            items[-1]["arguments"] = arguments
        items[-1]["status"] = "completed"
    usage = {
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return Answer(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": asked.body["model"],
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }
    )


def embeds(asked: RecordedQuestion, vector: Sequence[float]) -> Answer:
    """A vector, in the form of the provider whose path was asked."""
    if asked.path == "/api/embeddings":
        return Answer({"embedding": list(vector)})
    if asked.path == "/api/embed":
        return Answer({"model": asked.body["model"], "embeddings": [list(vector)], "prompt_eval_count": INPUT_TOKENS})
    packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    is_packed = asked.body.get("encoding_format") == "base64"
    return Answer(
        {
            "object": "list",
            "model": asked.body["model"],
            "data": [{"object": "embedding", "index": 0, "embedding": packed if is_packed else list(vector)}],
            "usage": {"prompt_tokens": INPUT_TOKENS, "total_tokens": INPUT_TOKENS},
        }
    )


def words(text: str, size: int = 256) -> list[float]:
    """A vector by which texts are as similar as their words."""
    vector = [0.0] * size
    for word in re.findall(r"\w+", text.casefold()):
        vector[zlib.crc32(word.encode()) % size] += 1.0
    return vector


def error(status: int, message: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Answer:
    """A refusal in the form that OpenAI, Azure and Anthropic share; Ollama's differs, and is read all the same."""
    return Answer({"error": {"message": message, **fields}}, status, headers or {})


@contextlib.contextmanager
def serving() -> Iterator[ModelServer]:
    """A server for the length of the block."""
    played = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet; else each answer waits for an acknowledgement.
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = played.handle(RecordedQuestion(self.path, headers, body))
            if answer.status == 0:
                self.close_connection = True
                return
            content = answer.body
            if not isinstance(content, bytes):
                content = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(answer.status)
            sent = {"Content-Type": "application/json", "Content-Length": str(len(content)), **answer.headers}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Tests are quiet."""

    with listening(Handler) as played.url:
        yield played
