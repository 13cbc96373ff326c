"""Keeps the data of an HTML report below a limit by cutting long texts."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from agenteval.results.case import CaseResult

#: Maximum number of characters of data in a report; larger reports open slowly.
DATA_LIMIT = 80_000_000
_TEXT_LIMITS = (20_000, 4_000, 1_000, 200)


class Room:
    """Distributes the characters of the limit over the cases.

    A case gets the characters that it needs while a share remains for each following case. All cases share a quarter
    of the limit, and the cases that did not pass share another quarter.

    Args:
        limit: characters for all cases.
        cases: number of cases.
        not_passed: number of cases that did not pass.
    """

    def __init__(self, limit: int, cases: int, not_passed: int) -> None:
        self._left = limit
        self._to_come, self._not_passed_to_come = cases, not_passed
        self._share = limit // (4 * max(1, cases))
        self._further_share = limit // (4 * max(1, not_passed))
        self.cut = 0

    def fit(self, case: CaseResult) -> str:
        """Return the JSON of a case, with its texts cut if necessary; ``cut`` counts the cut cases."""
        share = self._share
        self._to_come -= 1
        if case.status != "passed":
            share += self._further_share
            self._not_passed_to_come -= 1
        reserved = self._share * max(0, self._to_come) + self._further_share * max(0, self._not_passed_to_come)
        allowed = max(share, self._left - reserved)
        text = compact_json(case)
        if len(text) > allowed:
            self.cut += 1
            text = _shortened(case, allowed)
        self._left -= len(text)
        return text


def compact_json(value: Any) -> str:
    """Return the JSON of a model without its ``None`` fields, or of lists and mappings."""
    try:
        return to_json(value, exclude_none=True, inf_nan_mode="null").decode()
    except PydanticSerializationError:
        # A lone surrogate in a name; the writer of the file replaces it.
        return _dumped(_cut(value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value))


def _shortened(case: CaseResult, allowed: int) -> str:
    value = case.model_dump(exclude_none=True)
    for limit in _TEXT_LIMITS:
        text = _dumped(_cut(value, limit))
        if len(text) <= allowed:
            return text
    # There are so many turns or calls that even short texts exceed the limit, so only the row is kept.
    return _dumped(_cut({key: value[key] for key in ("id", "name", "status")} | {"iterations": []}, _TEXT_LIMITS[-1]))


def _cut(value: Any, limit: int = sys.maxsize) -> Any:
    """Return JSON data with texts cut, and ``null`` for numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]}… ({len(value) - limit:,} more characters in results.json)"
    if isinstance(value, dict):
        return {_cut(key, limit): _cut(item, limit) for key, item in value.items()}
    return [_cut(item, limit) for item in value] if isinstance(value, list) else value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
