"""Overlap with a reference text: token F1, BLEU, ROUGE, METEOR. All scores are 0 to 1."""

from __future__ import annotations

import io
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from rapidfuzz.distance import LCSseq

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field
from agenteval.core.text import choices
from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.text import GROUND_TRUTH
from agenteval.suite.forms import unreadable

# Counts the word sequences that two texts share, for BLEU and ROUGE.
#
# In the libraries, counting takes most of the time. These counts are equal, so the scores are equal to the last bit;
# tests compare both on arbitrary texts.


def shared(left: Sequence[str], right: Sequence[str], order: int) -> int:
    """Return the number of common sequences of ``order`` words, with multiplicity."""
    unlike, other_unlike = set(_ngrams(left, order)), set(_ngrams(right, order))
    common = unlike & other_unlike
    if len(unlike) == count(left, order) or len(other_unlike) == count(right, order):
        # One text has no repeated sequence, so each common sequence counts once.
        return len(common)
    counts, other_counts = Counter(_ngrams(left, order)), Counter(_ngrams(right, order))
    repeated = [ngram for ngram in common if counts[ngram] > 1]
    return len(common) + sum([min(counts[ngram], other_counts[ngram]) - 1 for ngram in repeated])


def count(words: Sequence[str], order: int) -> int:
    """Return the number of sequences of ``order`` words."""
    return max(0, len(words) - order + 1)


def _ngrams(words: Sequence[str], order: int) -> Iterable[str | tuple[str, ...]]:
    return words if order == 1 else zip(*[words[start:] for start in range(order)], strict=False)


def longest_common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of words."""
    # As numbers, because rapidfuzz compares other items by their hashes.
    numbers = {word: number for number, word in enumerate(dict.fromkeys((*left, *right)))}
    return LCSseq.similarity([numbers[word] for word in left], [numbers[word] for word in right])


_REMOVED = "<skipped>"
_MOST_WORDS = 2**15


class Tokens13a:
    """The tokens of mteval-v13a, cached by word: its rules do not depend on neighbouring words."""

    def __init__(self, of_line: Callable[[str], str]) -> None:
        self._of_line = of_line
        self._words = _Words(of_line)

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        line = text.replace("-\n", "").replace("\n", " ") if "\n" in text else text
        if _REMOVED in line and line is not text:
            # The rules remove it before they join lines, and the joined text may contain it again.
            return self._of_line(text).split()
        tokens: list[str] = []
        for word in line.split(" "):
            if word.isalnum():
                # No rule changes words that consist of letters and digits.
                tokens.append(word)
            else:
                tokens += self._words[word]
        return tokens


class _Words(dict[str, tuple[str, ...]]):
    """The tokens of each word, filled on demand."""

    def __init__(self, of_line: Callable[[str], str]) -> None:
        super().__init__()
        self._of_line = of_line

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _MOST_WORDS:
            self.clear()
        tokens = self[word] = tuple(self._of_line(word).split())
        return tokens


RougeVariant = Literal["rouge1", "rouge2", "rougeL"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
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
        note = _note("f1_score", observation)
        if not actual or not expected:
            same = float(_words(observation.response) == _words(observation.ground_truth or ""))
            return Outcome(same, reason=note, details={"precision": same, "recall": same})
        overlap = shared(actual, expected, 1)
        precision, recall = overlap / len(actual), overlap / len(expected)
        details = {"precision": precision, "recall": recall}
        return Outcome(_f_measure(precision, recall), reason=note, details=details)


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


#: sacrebleu's tokenizers of sentences; the last ones need a package or a download.
TOKENIZERS = ("13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores101", "flores200")


@cache
def _sacrebleu(tokenizer: str) -> tuple[Any, Callable[[str], list[str]], str]:
    from sacrebleu.metrics.bleu import BLEU

    if tokenizer not in TOKENIZERS:
        raise ValueError(f"no tokenizer {tokenizer!r}{choices(tokenizer, TOKENIZERS, 'known')}")
    try:
        scorer = BLEU(effective_order=True, smooth_method="exp", tokenize=tokenizer)
    except (RuntimeError, ImportError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(Problem(f"bleu: tokenizer {tokenizer}: {said}", kind=Kind.REQUIREMENT)) from None
    # The signature contains the number of references of the last scored sentence.
    scorer.sentence_score("", [""])
    is_13a = tokenizer == TOKENIZERS[0]
    tokens = Tokens13a(scorer.tokenizer) if is_13a else lambda text: scorer.tokenizer(text).split()
    return scorer, tokens, str(scorer.get_signature())


@dataclass(frozen=True)
class Bleu:
    """Sentence BLEU by sacrebleu: case-sensitive, exponential smoothing, effective order.

    Args:
        tokenizer: one of ``TOKENIZERS``; sacrebleu's own choice is ``13a``, which divides words at spaces.

    Raises:
        ConfigError: at construction, if the tokenizer needs a package that is not installed.
    """

    tokenizer: str = TOKENIZERS[0]
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH

    def __post_init__(self) -> None:
        # Imported with the metric, so that the slow import does not count towards an agent's latency.
        _sacrebleu(self.tokenizer)

    def measure(self, observation: Observation) -> Outcome:
        """Score against the reference; the details contain sacrebleu's signature."""
        scorer, tokens, signature = _sacrebleu(self.tokenizer)
        actual = tokens(observation.response.rstrip())
        expected = tokens((observation.ground_truth or "").rstrip())
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
            "signature": signature,
        }
        return Outcome(score.score / 100, reason=_note("bleu", observation, self.tokenizer), details=details)


@cache
def _rouge() -> Callable[[str], list[str]]:
    # Not rouge-score's scorer, which imports nltk and numpy.
    from rouge_score.tokenize import NON_ALPHANUM_RE

    # Without stemming, the other steps of its function have no effect.
    return lambda text: NON_ALPHANUM_RE.sub(" ", text.lower()).split()


@dataclass(frozen=True)
class Rouge:
    """ROUGE F-measure on rouge-score's tokens, without stemming (Lin 2004, with one reference).

    Tokens are runs of ``[a-z0-9]`` after lower-casing, so texts in other scripts score 0, with a note.
    """

    variant: RougeVariant = "rougeL"
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    _tokens: Callable[[str], list[str]] = field(default_factory=_rouge, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score one variant; the details contain all three."""
        actual = self._tokens(observation.response)
        expected = self._tokens(observation.ground_truth or "")
        common = {
            "rouge1": (shared(actual, expected, 1), 1),
            "rouge2": (shared(actual, expected, 2), 2),
            "rougeL": (longest_common_subsequence(actual, expected), 1),
        }
        details = {
            name: _f_measure(both / max(count(actual, order), 1), both / max(count(expected, order), 1))
            for name, (both, order) in common.items()
        }
        return Outcome(details[self.variant], reason=_note("rouge", observation), details=details)


def _note(metric: str, observation: Observation, tokenizer: str | None = None) -> str | None:
    """Return why a score says little: the tokenizer cannot read one of the texts."""
    texts = (observation.ground_truth or "", observation.response)
    return next(filter(None, (unreadable(metric, text, tokenizer) for text in texts)), None)


def _f_measure(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


DEBIAN_WORDNET = Path("/usr/share/wordnet")

# Lexicographer files 00 to 44 with their syntactic category, from lexnames(5WN). NLTK needs this file, but
# Debian's wordnet-base does not contain it.
_LEXICOGRAPHER_FILES = (
    ("adj", ("all", "pert")),
    ("adv", ("all",)),
    (
        "noun",
        (
            *("Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication"),
            *("event", "feeling", "food", "group", "location", "motive", "object", "person"),
            *("phenomenon", "plant", "possession", "process", "quantity", "relation", "shape"),
            *("state", "substance", "time"),
        ),
    ),
    (
        "verb",
        (
            *("body", "change", "cognition", "communication", "competition", "consumption", "contact"),
            *("creation", "emotion", "motion", "perception", "possession", "social", "stative", "weather"),
        ),
    ),
    ("adj", ("ppl",)),
)
_CATEGORY = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

# English abbreviations whose full stop does not end a sentence.
_ABBREVIATIONS = frozenset(
    {
        *("dr", "mr", "mrs", "ms", "prof", "rev", "gen", "sen", "rep", "gov", "capt", "lt", "col", "sgt"),
        *("st", "jr", "sr", "co", "corp", "inc", "ltd", "bros", "vs", "etc", "e.g", "i.e", "cf", "al"),
        *("approx", "dept", "est", "fig", "no", "vol", "pp", "ed", "a.m", "p.m", "u.s", "u.k", "u.n"),
        *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
    }
)


def words(text: str) -> list[str]:
    """Return the Penn Treebank tokens of every sentence; fixed rules split sentences equally on every machine."""
    sentences, tokenizer = _tokenizers()
    return [token for sentence in sentences.tokenize(text) for token in tokenizer.tokenize(sentence)]


@cache
def _tokenizers() -> tuple[Any, Any]:
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types = set(_ABBREVIATIONS)
    return PunktSentenceTokenizer(parameters), NLTKWordTokenizer()


@cache
def load_wordnet(directory: Path = DEBIAN_WORDNET) -> Any:
    """Load WordNet from Debian's package, else from NLTK's data directory."""
    import nltk

    if (directory / "data.noun").exists():
        return _debian_wordnet(directory)
    try:
        nltk.data.find("corpora/wordnet")
    except LookupError:
        try:
            nltk.data.find("corpora/wordnet.zip")
        except LookupError:
            raise ConfigError(
                Problem(
                    "the metric meteor needs WordNet, which is not on this machine; install it with "
                    "`apt-get install wordnet-base` or `python -m nltk.downloader wordnet`",
                    kind=Kind.REQUIREMENT,
                )
            ) from None
    from nltk.corpus import wordnet

    return wordnet


def _debian_wordnet(directory: Path) -> Any:
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class DebianWordNet(WordNetCorpusReader):  # type: ignore[misc] # NLTK has no types
        """NLTK's reader without the two files that Debian's package omits."""

        def open(self, file: str) -> Any:
            return io.StringIO(_lexnames()) if file == "lexnames" else super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:  # noqa: ARG002
            # This method supports other languages only, and reads index.sense, which is not packaged.
            return None

    if str(directory) not in nltk.data.path:
        # NLTK opens only files below its data path.
        nltk.data.path.append(str(directory))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "multilingual functions are not available"
        return DebianWordNet(str(directory), None)


def _lexnames() -> str:
    names = [(category, name) for category, files in _LEXICOGRAPHER_FILES for name in files]
    return "".join(
        f"{number:02d}\t{category}.{name}\t{_CATEGORY[category]}\n" for number, (category, name) in enumerate(names)
    )


@dataclass(frozen=True)
class Meteor:
    """METEOR (alpha 0.9, beta 3, gamma 0.5; Porter stems, WordNet 3.0 synonyms).

    Banerjee and Lavie 2005, as ``nltk.translate.meteor_score`` computes it.
    """

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    _wordnet: Any = field(default_factory=load_wordnet, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score against the reference; a text without tokens scores 0."""
        from nltk.translate.meteor_score import single_meteor_score

        expected, actual = words(observation.ground_truth or ""), words(observation.response)
        note = _note("meteor", observation)
        if not expected or not actual:
            return Outcome(0.0, reason=note)
        return Outcome(float(single_meteor_score(expected, actual, wordnet=self._wordnet)), reason=note)
