"""Similarity by embeddings: of an answer and a reference, or of all answers of a case.

Embeddings compare topics, not statements: "refunds are possible" and "refunds are not possible" are similar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import ClassVar

from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass
from agenteval.metrics.base import MetricError, Observation, Outcome
from agenteval.metrics.resources import Resources

# The cosine of equal vectors differs from 1 by rounding.
_ROUNDING = 1e-6
_NOTHING_NEEDED: frozenset[str] = frozenset()

Vector = Sequence[float]


@dataclass(frozen=True)
class Similar:
    """The cosine similarity of an answer and a reference, 0..1 (opposite meanings count as 0).

    Args:
        model: the embedding model; default: the model of the run.
    """

    reference: str
    resources: Resources
    model: ModelSpec | None = None
    requires: ClassVar[frozenset[str]] = _NOTHING_NEEDED

    def __post_init__(self) -> None:
        self.resources.embeddings.check(self.model)

    async def measure(self, observation: Observation) -> Outcome:
        """Compare the texts; the suite's threshold decides the verdict."""
        if not observation.response.strip():
            return Outcome(0.0, passed=False, decided=True, reason="empty response")
        score = await similarity(self.reference, observation.response, self.resources, self.model)
        label = self.resources.embeddings.label(self.model)
        return Outcome(score, reason=f"similarity {score:.3f} to the expected text", model=label)


@dataclass(frozen=True)
class Consistency:
    """The similarity of each answer of a case to the centre of all answers, 0..1.

    The centre is the normalised mean of the vectors. The case is consistent if every answer reaches
    ``min_similarity``.
    """

    min_similarity: float
    resources: Resources
    model: ModelSpec | None = None
    requires: ClassVar[frozenset[str]] = _NOTHING_NEEDED

    def __post_init__(self) -> None:
        self.resources.embeddings.check(self.model)

    async def measure_all(self, observations: Sequence[Observation]) -> list[Outcome]:
        """Compare the answers of all iterations."""
        if len(observations) < 2:
            raise MetricError("there is only one answer; consistency compares several")
        texts = [observation.response for observation in observations]
        scores = await self._to_the_middle(texts)
        least = min(scores)
        passed = least >= self.min_similarity - _ROUNDING
        words = f"the least similar of {len(scores)} answers is {least:.3f} from the mean of all"
        details = {"min": least, "mean": sum(scores) / len(scores), "distinct_answers": len(set(texts))}
        label = self.resources.embeddings.label(self.model)
        return [
            Outcome(score, passed=passed, decided=True, reason=words, details=details, model=label)
            for score in scores
        ]

    async def _to_the_middle(self, texts: Sequence[str]) -> list[float]:
        if len(set(texts)) == 1:
            return [1.0] * len(texts)
        vectors = await self.resources.embeddings.vectors(texts, self.model)
        _check_sizes(vectors)
        middle = [sum(column) for column in zip(*map(_unit, vectors), strict=True)]
        return [_clamped(cosine(vector, middle)) for vector in vectors]


async def similarity(left: str, right: str, resources: Resources, model: ModelSpec | None) -> float:
    """Return the cosine similarity of two texts, 0..1."""
    if left == right:
        return 1.0
    first, second = await resources.embeddings.vectors([left, right], model)
    return _clamped(cosine(first, second))


def cosine(left: Vector, right: Vector) -> float:
    """Return the cosine of two vectors; 0 if one of them is a zero vector."""
    _check_sizes((left, right))
    lengths = math.hypot(*left) * math.hypot(*right)
    return sum(map(mul, left, right)) / lengths if lengths else 0.0


def _check_sizes(vectors: Sequence[Vector]) -> None:
    sizes = sorted(set(map(len, vectors)))
    if len(sizes) > 1:
        raise MetricError(f"the embeddings have {' and '.join(map(str, sizes))} dimensions")


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else vector


def _clamped(value: float) -> float:
    value = max(0.0, min(1.0, value))
    return 1.0 if value > 1 - _ROUNDING else value
