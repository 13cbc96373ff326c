"""The base of the models of results.json, and the types of its texts and free values."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

_SURROGATE = re.compile("[\ud800-\udfff]")
# JSON parsers limit the nesting; a common limit is 200, and these values are nested in other levels.
_MAX_DEPTH = 100
_TOO_DEEP = "… (nested too deeply)"
_PLAIN = frozenset({type(None), bool, int, float})


def _fail_fast(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in {"list", "dict"}:
            schema["fail_fast"] = True
        for part in schema.values():
            _fail_fast(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _fail_fast(part)


class ResultsModel(BaseModel):
    """The base of the models of results.json; keys of later versions are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Stop at the first invalid item of a list or dictionary; an error per item would fill the memory."""
        schema = handler(source)
        _fail_fast(schema)
        return schema


def _clean_text(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return a value as valid JSON: without lone surrogates and deep nesting."""
    # Every detail of every score passes here, so the types of most values come first, and not by isinstance.
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _clean_text(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, dict):
        if depth == _MAX_DEPTH:
            return _TOO_DEEP
        return {
            key if type(key) is str and key.isascii() else _clean_text(str(key)): clean_json(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return _TOO_DEEP if depth == _MAX_DEPTH else [clean_json(item, depth + 1) for item in value]
    return _clean_text(value) if isinstance(value, str) else value


# Output of agents is untrusted. These types keep only valid JSON.
Text = Annotated[str, AfterValidator(_clean_text)]
Json = Annotated[Any, AfterValidator(clean_json)]
