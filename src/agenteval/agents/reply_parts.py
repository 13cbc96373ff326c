"""Parts of replies that the APIs of models and many services have in common."""

from __future__ import annotations

from typing import Any

from agenteval.core.errors import AgentError
from agenteval.core.masking import shortened
from agenteval.core.text.json_text import text_of

_SHOWN = 300
_TEXT_BLOCKS = ("text", "output_text")


def reported(error: Any) -> AgentError:
    """Return the error that a reply contains."""
    message = error.get("message") if isinstance(error, dict) else error
    said = message if isinstance(message, str) and message else text_of(error)
    return AgentError(f"the agent reported an error: {shortened(said, _SHOWN)}")


def raise_error(reply: Any) -> None:
    """Raise the error that a reply contains below ``error``, if any; empty values and false are no errors."""
    if isinstance(reply, dict) and reply.get("error"):
        raise reported(reply["error"])


def text_of_blocks(content: Any) -> str | None:
    """Return the text of a message: its content, or the text blocks in it; ``None`` without any."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [item if isinstance(item, str) else _block_text(item) for item in content]
    found = [text for text in texts if text is not None]
    return "".join(found) if found else None


def _block_text(block: Any) -> str | None:
    if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS and isinstance(block.get("text"), str):
        return str(block["text"])
    return None
