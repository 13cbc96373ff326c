"""Fast tokenizers of sacrebleu and rouge-score; tests compare them with the libraries on arbitrary texts."""

from __future__ import annotations

from collections.abc import Callable

_REMOVED = "<skipped>"
_MOST_WORDS = 2**15


class Tokens13a:
    """The tokens of mteval-v13a, cached by word: its rules do not depend on neighbouring words.

    Args:
        of_line: sacrebleu's tokenizer, which joins tokens with spaces.
    """

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
