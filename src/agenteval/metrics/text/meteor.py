"""METEOR by NLTK, offline: WordNet of this machine, and tokenization rules that need no download."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.text.equality import GROUND_TRUTH

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
    """Load WordNet from Debian's package, else from NLTK's data directory.

    Raises:
        ConfigError: both are missing; the message contains the install command.
    """
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


@dataclass(frozen=True, slots=True)
class Meteor:
    """METEOR (alpha 0.9, beta 3, gamma 0.5; Porter stems, WordNet 3.0 synonyms).

    Banerjee and Lavie 2005, as ``nltk.translate.meteor_score`` computes it.

    Raises:
        ConfigError: at construction, if WordNet is not on this machine.
    """

    requires: ClassVar[frozenset[str]] = GROUND_TRUTH
    _wordnet: Any = field(default_factory=load_wordnet, repr=False, compare=False)

    def measure(self, observation: Observation) -> Outcome:
        """Score against the reference; a text without tokens scores 0."""
        from nltk.translate.meteor_score import single_meteor_score

        expected, actual = words(observation.ground_truth or ""), words(observation.response)
        if not expected or not actual:
            return Outcome(0.0)
        return Outcome(float(single_meteor_score(expected, actual, wordnet=self._wordnet)))
