"""Overlap with a reference text: token F1, BLEU, ROUGE. All scores are 0 to 1, informational without a threshold."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal

from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.text.equality import GROUND_TRUTH
from agenteval.metrics.text.ngrams import count, shared
from agenteval.metrics.text.tokenizers import Tokens13a

RougeVariant = Literal["rouge1", "rouge2", "rougeL"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class TokenF1:
    """Token F1 as SQuAD defines it (Rajpurkar et al. 2016, the official evaluation script).

    Lower case, no punctuation, no articles, split at white space; harmonic mean of precision and
    recall over the multiset overlap. If neither text has a token, as for the choices "A" and "The",
    the score is 1 if the texts with their articles are equal.
    """

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH

    def measure(self, observation: Observation) -> Outcome:
        """Score the answer; the details contain precision and recall."""
        actual = squad_tokens(observation.response)
        expected = squad_tokens(observation.ground_truth or "")
        if not actual or not expected:
            same = float(_words(observation.response) == _words(observation.ground_truth or ""))
            return Outcome(same, details={"precision": same, "recall": same})
        overlap = shared(actual, expected, 1)
        precision, recall = overlap / len(actual), overlap / len(expected)
        return Outcome(_f_measure(precision, recall), details={"precision": precision, "recall": recall})


def squad_tokens(text: str) -> list[str]:
    """Return the tokens that SQuAD compares."""
    words = _words(text)
    together = "".join(words)
    if together.isascii() and together.isalnum():
        # Only spaces end a word.
        return [word for word in words if word not in _ARTICLE_WORDS]
    return _ARTICLES.sub(" ", " ".join(words)).split()


def _words(text: str) -> list[str]:
    return text.lower().translate(_NO_PUNCTUATION).split()


@dataclass(frozen=True, slots=True)
class _Sacrebleu:
    """Sacrebleu's sentence BLEU, its tokens, and its signature."""

    scorer: Any
    tokens: Tokens13a
    signature: str


@cache
def _sacrebleu() -> _Sacrebleu:
    from sacrebleu.metrics.bleu import BLEU

    scorer = BLEU(effective_order=True, smooth_method="exp")
    # The signature contains the number of references of the last scored sentence.
    scorer.sentence_score("", [""])
    return _Sacrebleu(scorer, Tokens13a(scorer.tokenizer), str(scorer.get_signature()))


@dataclass(frozen=True, slots=True)
class Bleu:
    """Sentence BLEU by sacrebleu: 13a tokens, case-sensitive, exponential smoothing, effective order."""

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    # Created with the metric, so that the slow import does not count towards an agent's latency.
    _library: _Sacrebleu = field(default_factory=_sacrebleu, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score against the reference; the details contain sacrebleu's signature."""
        scorer = self._library.scorer
        actual = self._library.tokens(observation.response.rstrip())
        expected = self._library.tokens((observation.ground_truth or "").rstrip())
        orders = range(1, scorer.max_ngram_order + 1)
        score = scorer.compute_bleu(
            correct=[shared(actual, expected, order) for order in orders],
            total=[count(actual, order) for order in orders],
            sys_len=len(actual),
            ref_len=len(expected),
            smooth_method=scorer.smooth_method,
            effective_order=scorer.effective_order,
        )
        details = {
            "precisions": [round(value / 100, 6) for value in score.precisions],
            "brevity_penalty": score.bp,
            "signature": self._library.signature,
        }
        return Outcome(score.score / 100, details=details)


@dataclass(frozen=True, slots=True)
class _RougeParts:
    """rouge-score's tokens, and their longest common subsequence."""

    tokens: Callable[[str], list[str]]
    longest_common_subsequence: Callable[[list[str], list[str]], int]


@cache
def _rouge() -> _RougeParts:
    # Not rouge-score's scorer, which imports nltk and numpy.
    from rouge_score.tokenize import NON_ALPHANUM_RE

    from agenteval.metrics.text.ngrams import longest_common_subsequence

    # Without stemming, the other steps of its function have no effect.
    return _RougeParts(lambda text: NON_ALPHANUM_RE.sub(" ", text.lower()).split(), longest_common_subsequence)


@dataclass(frozen=True, slots=True)
class Rouge:
    """ROUGE F-measure on rouge-score's tokens, without stemming (Lin 2004, with one reference).

    Tokens are runs of ``[a-z0-9]`` after lower-casing, so texts in other scripts score 0.
    """

    variant: RougeVariant = "rougeL"
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    _parts: _RougeParts = field(default_factory=_rouge, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score one variant; the details contain all three."""
        actual = self._parts.tokens(observation.response)
        expected = self._parts.tokens(observation.ground_truth or "")
        common = {
            "rouge1": (shared(actual, expected, 1), 1),
            "rouge2": (shared(actual, expected, 2), 2),
            "rougeL": (self._parts.longest_common_subsequence(actual, expected), 1),
        }
        details = {
            name: _f_measure(both / max(count(actual, order), 1), both / max(count(expected, order), 1))
            for name, (both, order) in common.items()
        }
        return Outcome(details[self.variant], details=details)


def _f_measure(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
