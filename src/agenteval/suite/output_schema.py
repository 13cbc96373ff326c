"""Expected form of an answer: text to match, or JSON with a schema.

Data only; ``agenteval.metrics`` checks answers against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agenteval.core.text.pattern import matches_everything

Strategy = Literal["exact", "contains", "contains_any", "startswith", "endswith", "match", "similar"]
_PARTS = frozenset({"contains_any", "startswith", "endswith"})
TypeName = Literal["str", "int", "float", "bool", "dict", "list", "set", "any"]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A strategy for matching a text.

    Attributes:
        strategy: ``contains`` requires all of the expected texts; ``contains_any``, ``startswith`` and ``endswith``
            require one of them; ``match`` searches for a regular expression; ``similar`` compares the meaning.
        expected: texts, a pattern, or the text to resemble.
        case_sensitive: whether case and surrounding white space count.
        threshold: for ``similar``: the required cosine similarity, 0..1.
    """

    strategy: Strategy
    expected: tuple[str, ...]
    case_sensitive: bool = False
    threshold: float | None = None

    @property
    def matches_everything(self) -> bool:
        """Whether every text matches, so that nothing is checked."""
        if self.strategy == "match":
            return matches_everything(self.expected[0])
        is_empty = [not (text if self.case_sensitive else text.strip()) for text in self.expected]
        if self.strategy == "contains":
            return all(is_empty)
        return self.strategy in _PARTS and any(is_empty)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of JSON value; ``item`` is the type inside a list or a set, if given."""

    name: TypeName
    item: FieldType | None = None

    def __str__(self) -> str:
        return f"{self.name}[{self.item}]" if self.item else self.name


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """Requirements of a JSON value.

    Constraints on texts and numbers apply to the value, or to each entry of a list.

    Attributes:
        types: allowed types; empty allows all.
        text: how the text of the value must match.
        enum: allowed values.
        fields: fields of an object; additional ones are allowed.
        items: requirements of each entry of a list.
    """

    types: tuple[FieldType, ...] = ()
    required: bool = True
    text: TextMatch | None = None
    enum: tuple[Any, ...] | None = None
    min_length: int | None = None
    max_length: int | None = None
    min: float | None = None
    max: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    fields: Mapping[str, FieldSpec] | None = field(default=None)
    items: FieldSpec | None = None
