"""Built-in prompts of judges."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

_FILE = "prebuilt_judges.toml"
# FluxLoop documents this one as an example, and the others as built-in.
NOT_DOCUMENTED = "response_quality"
_LONGEST_SCALE = 10.0
_REPLIES: Mapping[str, str] = {
    "first_number_1_10": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "first_float": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "json_score": 'Reply with one JSON object and nothing else: {"score": <number>, "reason": "<one sentence>"}',
}


def prebuilt_names() -> Sequence[str]:
    """Return the names of evaluators with a built-in prompt."""
    return tuple(_prompts())


def prebuilt_template(name: str, parser: str, max_score: float) -> str:
    """Return the built-in prompt of an evaluator.

    Args:
        name: name of the evaluator.
        parser: parser of the score.
        max_score: the highest score.

    Raises:
        KeyError: no built-in prompt exists.
    """
    highest = min(max_score, _LONGEST_SCALE) if parser == "first_number_1_10" else max_score
    lowest = 1 if highest > 1 else 0
    scale = f"Give a score from {lowest} (worst) to {highest:g} (best)."
    return f"{_prompts()[name].strip()}\n\n{scale} {_REPLIES[parser]}\n"


@cache
def _prompts() -> dict[str, str]:
    text = files("agenteval.suite.formats.fluxloop").joinpath(_FILE).read_text(encoding="utf-8")
    return {name: judge["prompt"] for name, judge in tomllib.loads(text).items()}
