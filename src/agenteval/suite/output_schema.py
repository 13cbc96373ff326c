"""What an answer must look like: text to match, or JSON of a certain shape.

Data only; ``agenteval.metrics`` checks answers against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Strategy = Literal["exact", "contains", "contains_any", "startswith", "endswith", "match", "similar"]
TypeName = Literal["str", "int", "float", "bool", "dict", "list", "set", "any"]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """One way of matching a text.

    Attributes:
        strategy: ``contains`` wants all of the expected texts; ``contains_any``, ``startswith`` and ``endswith`` one
            of them; ``match`` is a regular expression that is searched for; ``similar`` compares the meaning.
        expected: texts, a pattern, or the text to resemble.
        case_sensitive: heed case and surrounding white space.
        threshold: for ``similar``: the cosine similarity needed, 0..1.
    """

    strategy: Strategy
    expected: tuple[str, ...]
    case_sensitive: bool = False
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of JSON value; ``item`` is the type inside a list or a set, where one is given."""

    name: TypeName
    item: FieldType | None = None

    def __str__(self) -> str:
        return f"{self.name}[{self.item}]" if self.item else self.name


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What a JSON value must be.

    Constraints on texts and numbers hold for the value itself, or for each entry of a list.

    Attributes:
        types: any one of them; empty allows all.
        default: stands in for a value that is missing, where ``has_default``.
        text: what the value must say.
        enum: the values that are allowed.
        fields: of an object; further ones do not matter.
        items: what each entry of a list must be.
    """

    types: tuple[FieldType, ...] = ()
    required: bool = True
    default: Any = None
    has_default: bool = False
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
