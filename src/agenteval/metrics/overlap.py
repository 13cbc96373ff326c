"""Overlap with a reference text: token F1, BLEU, ROUGE. All 0..1, informational without a threshold."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal

from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.deterministic import GROUND_TRUTH

RougeVariant = Literal["rouge1", "rouge2", "rougeL"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class TokenF1:
    """Token F1 as SQuAD defines it (Rajpurkar et al. 2016, the official evaluation script).

    Lower case, no punctuation, no articles, split on white space; harmonic mean of precision and
    recall over the multiset overlap. Where neither text has a token, as with the choices "A" and "The",
    they agree if they are the same with their articles.
    """

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH

    def measure(self, observation: Observation) -> Outcome:
        """Score; precision and recall stand in the details."""
        actual = squad_tokens(observation.response)
        expected = squad_tokens(observation.ground_truth or "")
        if not actual or not expected:
            same = float(_words(observation.response) == _words(observation.ground_truth or ""))
            return Outcome(same, details={"precision": same, "recall": same})
        overlap = (Counter(actual) & Counter(expected)).total()
        precision, recall = overlap / len(actual), overlap / len(expected)
        f1 = 2 * precision * recall / (precision + recall) if overlap else 0.0
        return Outcome(f1, details={"precision": precision, "recall": recall})


def squad_tokens(text: str) -> list[str]:
    """The tokens that SQuAD compares."""
    return _ARTICLES.sub(" ", " ".join(_words(text))).split()


def _words(text: str) -> list[str]:
    return text.lower().translate(_NO_PUNCTUATION).split()


@cache
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True, smooth_method="exp")


@dataclass(frozen=True, slots=True)
class Bleu:
    """Sentence BLEU by sacrebleu: 13a tokens, case-sensitive, exponential smoothing, effective order."""

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    # Made with the metric, so that a slow import never falls into the time that an agent is measured.
    _scorer: Any = field(default_factory=_bleu, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score against the one reference; the details hold sacrebleu's signature."""
        score = self._scorer.sentence_score(observation.response, [observation.ground_truth or ""])
        details = {
            "precisions": [round(value / 100, 6) for value in score.precisions],
            "brevity_penalty": score.bp,
            "signature": str(self._scorer.get_signature()),
        }
        return Outcome(score.score / 100, details=details)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    variants: Sequence[RougeVariant] = ("rouge1", "rouge2", "rougeL")
    return RougeScorer(list(variants), use_stemmer=False)


@dataclass(frozen=True, slots=True)
class Rouge:
    """ROUGE F-measure on rouge-score's tokens, without stemming.

    Tokens are runs of ``[a-z0-9]`` after lower-casing, so texts in other scripts have none and score 0.
    """

    variant: RougeVariant = "rougeL"
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    _scorer: Any = field(default_factory=_rouge, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score one variant; the details hold all three."""
        scores = self._scorer.score(observation.ground_truth or "", observation.response)
        details = {name: score.fmeasure for name, score in scores.items()}
        return Outcome(details[self.variant], details=details)
