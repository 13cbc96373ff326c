"""The prompts of judges that need none of their own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

_FILE = "prebuilt_judges.toml"
# FluxLoop documents the other ones as built in, and this one only as an example, which its readers copy.
NOT_DOCUMENTED = "response_quality"
_LONGEST_SCALE = 10.0
_REPLIES: Mapping[str, str] = {
    "first_number_1_10": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "first_float": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "json_score": 'Reply with one JSON object and nothing else: {"score": <number>, "reason": "<one sentence>"}',
}


def prebuilt_names() -> Sequence[str]:
    """The names of evaluators that have a built-in prompt."""
    return tuple(_prompts())


def prebuilt_template(name: str, parser: str, max_score: float) -> str:
    """The built-in prompt of an evaluator.

    Args:
        name: of the evaluator.
        parser: how the score will be read.
        max_score: the highest score.

    Raises:
        KeyError: there is none.
    """
    highest = min(max_score, _LONGEST_SCALE) if parser == "first_number_1_10" else max_score
    lowest = 1 if highest > 1 else 0
    scale = f"Give a score from {lowest} (worst) to {highest:g} (best)."
    return f"{_prompts()[name].strip()}\n\n{scale} {_REPLIES[parser]}\n"


@cache
def _prompts() -> dict[str, str]:
    text = files("agenteval.suite.formats.fluxloop").joinpath(_FILE).read_text(encoding="utf-8")
    return {name: judge["prompt"] for name, judge in tomllib.loads(text).items()}
