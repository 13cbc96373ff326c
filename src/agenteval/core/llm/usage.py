"""Checks the numbers of tokens that providers report, because budgets and costs are computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval.core.llm.spec import ModelSpec

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Completion

# Tokenizers of language models make at most one token of a byte; this is the usual mean of English text.
_BYTES_PER_TOKEN = 4
# Tokens of a question beyond its text: instructions that the provider adds for tools and formats, control tokens.
_ADDED_INPUT = 2_000
# Tokens of an answer beyond its text: control tokens, white space that was removed.
_REMOVED_OUTPUT = 256
# Tokens of reasoning, which are paid for and not shown, of a request without a limit. OpenAI's advice is to expect
# 25,000; their models can use more, but not for judgements.
_REASONING = 32_768
# Beginnings of the names of OpenAI's models without reasoning. A deployment or another server can have any name.
_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4", "text-embedding")
_ANTHROPIC_LIMIT = 8_192


def plausible_usage(model: ModelSpec, completion: Completion, sent: int) -> tuple[Completion, bool]:
    """Return an answer with plausible numbers of tokens, and whether one of them had to be estimated.

    A number is plausible if the texts can have as many tokens. Any other number, and whatever is not a number, is
    replaced by an estimate from the length of the text.

    Args:
        model: the model that answered.
        completion: its answer, with the numbers of the provider, which can be of any type.
        sent: length of the question in bytes.
    """
    received = len(completion.text.encode("utf-8", "surrogatepass"))
    tokens_in = _plausible(completion.input_tokens, sent, sent + _ADDED_INPUT)
    tokens_out = _plausible(completion.output_tokens, received, received + _REMOVED_OUTPUT + hidden_tokens(model))
    changed = (tokens_in, tokens_out) != (completion.input_tokens, completion.output_tokens)
    return (replace(completion, input_tokens=tokens_in, output_tokens=tokens_out) if changed else completion), changed


def hidden_tokens(model: ModelSpec) -> int:
    """Return the largest number of tokens that an answer can cost beyond its text: those of reasoning."""
    if model.provider in {"openai", "azure_openai"} and model.name.startswith(_WITHOUT_REASONING):
        return 0
    return model.max_tokens or (_ANTHROPIC_LIMIT if model.provider == "anthropic" else _REASONING)


def _plausible(reported: object, size: int, most: int) -> int | None:
    if reported is None or (isinstance(reported, int) and not isinstance(reported, bool) and 0 <= reported <= most):
        return reported
    return -(-size // _BYTES_PER_TOKEN)
