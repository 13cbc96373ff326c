"""The `search_docs` tool: splits the help pages into passages and ranks them for a query."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

K1 = 1.2  # how soon repeating a word stops helping
B = 0.75  # how strongly long passages are held back

STOP_WORDS = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
NUMBER_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SAME_WORD = {
    "bicycle": "bike",
    "children": "child",
    "cost": "price",
    "km": "kilometre",
    "much": "price",
    "people": "person",
}


def terms(text: str) -> list[str]:
    """Return the words that carry meaning, in order, reduced to a common stem."""
    words = re.findall(r"\d+(?:\.\d+)?|[a-z0-9]+(?:-[a-z0-9]+)*", text.lower().replace("'", ""))
    return [stem(word) for word in words if word not in STOP_WORDS]


def topics(text: str) -> set[str]:
    """Return the terms to search for: numbers say how much is wanted, not of what."""
    return {term for term in terms(text) if not term[0].isdigit() and term not in NUMBERS}


def stem(word: str) -> str:
    """Cut English endings roughly, so that charge, charges and charging meet."""
    word = SAME_WORD.get(word, word)
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-3] + "y" if word.endswith("ies") else word[:-1]
    word = SAME_WORD.get(word, word)
    if cut := re.fullmatch(r"(\w{3,}?)(?:ing|ed)", word):
        word = re.sub(r"([lmnpt])\1$", r"\1", cut[1])
    return word.removesuffix("e")


NUMBERS = {stem(word): str(number) for number, word in enumerate(NUMBER_WORDS, start=1)}


@dataclass(frozen=True)
class Passage:
    """One section of a help page."""

    source: str
    title: str
    section: str
    text: str

    def __str__(self) -> str:
        return f"{self.title} > {self.section} ({self.source})\n{self.text}"

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences and list items, without bullets."""
        lines = (line.removeprefix("- ") for line in self.text.splitlines())
        return [part for line in lines for part in re.split(r"(?<=[.!?])\s+", line) if part]

    @cached_property
    def frequencies(self) -> Counter[str]:
        """How often each term occurs, headings included."""
        return Counter(terms(f"{self.title} {self.section} {self.text}"))


@dataclass(frozen=True)
class Hit:
    """A passage found for a query; `confidence` (0..1) says how much of the query it covers."""

    passage: Passage
    confidence: float


class Index:
    """All passages, and two ways to rank them."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages = list(passages)
        self._containing = Counter(term for passage in self.passages for term in passage.frequencies)
        self._mean_length = sum(p.frequencies.total() for p in self.passages) / max(len(self.passages), 1)

    @classmethod
    def of_folder(cls, folder: Path) -> "Index":
        """Read every Markdown file of a folder, in the order of the names."""
        return cls(passage for path in sorted(folder.glob("*.md")) for passage in read_passages(path))

    def search(self, query: str, top_k: int, ranking: str) -> list[Hit]:
        """Return at most `top_k` hits, best first; `ranking` is `bm25` or `first-match`."""
        wanted = topics(query)
        match ranking:
            case "bm25":
                return self._bm25(wanted)[:top_k]
            case "first-match":
                return self._first_match(wanted)[:top_k]
            case _:
                raise ValueError(f"unknown ranking {ranking!r}; use 'bm25' or 'first-match'")

    def rarity(self, term: str) -> float:
        """Inverse document frequency: a word on few pages says more than one on all of them."""
        found = self._containing[term]
        return math.log(1 + (len(self.passages) - found + 0.5) / (found + 0.5))

    def weight(self, words: Iterable[str]) -> float:
        """Sum of the rarities of the distinct words."""
        return sum(self.rarity(word) for word in sorted(set(words)))

    def _bm25(self, wanted: set[str]) -> list[Hit]:
        scored = [(self._bm25_score(passage, wanted), passage) for passage in self.passages]
        scored.sort(key=lambda pair: -pair[0])
        return [Hit(passage, self._coverage(passage, wanted)) for score, passage in scored if score > 0]

    def _bm25_score(self, passage: Passage, wanted: set[str]) -> float:
        """Okapi BM25 (Robertson and Zaragoza, 2009)."""
        damping = K1 * (1 - B + B * passage.frequencies.total() / self._mean_length)
        counts = {term: passage.frequencies[term] for term in sorted(wanted)}
        return sum(self.rarity(term) * n * (K1 + 1) / (n + damping) for term, n in counts.items())

    def _coverage(self, passage: Passage, wanted: set[str]) -> float:
        return self.weight(wanted & passage.frequencies.keys()) / self.weight(wanted)

    def _first_match(self, wanted: set[str]) -> list[Hit]:
        """The naive way: whatever shares any word with the query, in the order of the files."""
        return [Hit(passage, 1.0) for passage in self.passages if wanted & passage.frequencies.keys()]


def read_passages(path: Path) -> list[Passage]:
    """Split a page (`# title`, then `## section`s) into its sections."""
    head, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title = head.strip().removeprefix("# ")
    parts = (section.partition("\n") for section in sections)
    return [Passage(path.name, title, name.strip(), text.strip()) for name, _, text in parts]
