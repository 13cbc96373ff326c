"""What the parts of a FluxLoop file have in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def number(value: Any) -> Any:
    """The value, unless it is a boolean, which pydantic takes for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


def one_as_list(value: Any) -> Any:
    """A single text as a list of one."""
    return [value] if isinstance(value, str) else value


Number = Annotated[float, BeforeValidator(number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(number)]
Share = Annotated[float, BeforeValidator(number), Field(ge=0, le=1)]
Texts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(one_as_list)]


class Entry(BaseModel):
    """A key without a value means its default, except where nothing is a value of its own."""

    model_config = ConfigDict(extra="forbid")
    null_counts: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        dropped = cls.model_fields.keys() - cls.null_counts
        return {key: item for key, item in value.items() if item is not None or key not in dropped}
