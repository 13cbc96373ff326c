"""The tool call checks of a trace: what it says, and what its calls tell."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agenteval.results.analysis.answers import tool_checks
from agenteval.results.case import ToolCall


@pytest.mark.parametrize(
    ("value", "shares"),
    [
        (True, (1.0,)),
        (False, (0.0,)),
        (0.5, (0.5,)),
        ("0.5", (0.5,)),
        (1, (1.0,)),
        ("true", (1.0,)),
        ("Passed", (1.0,)),
        ([True, "no", None], (1.0, 0.0)),
        *((wrong, (0.0,)) for wrong in ("fail", "n", "off", "unsuccessful", "0/3", "50%", "", "maybe")),
        *((wrong, (0.0,)) for wrong in (-1, "-1", math.nan, math.inf, "nan", "inf", {"ok": False})),
        # More than a share is all of them.
        *((more, (1.0,)) for more in (7, "7", 10**400)),
    ],
)
def test_only_shares_and_what_agrees_are_met(value: Any, shares: tuple[float, ...]) -> None:
    found = tool_checks({"tool_calling": {"appropriate_selection": value}}, [])
    assert found == {"appropriate_selection": shares}


FAILED = {"type": "tool", "name": "search", "error": "boom"}
WORKED = {"type": "tool", "name": "search", "output": "found"}


@pytest.mark.parametrize(
    ("trace", "calls", "shares"),
    [
        ({"timeline": [FAILED, WORKED]}, [], (0.5,)),
        ({"timeline": [{"type": "TOOL", "level": "ERROR"}]}, [], (0.0,)),
        *(
            ({"timeline": [{"type": "tool", **fields}, WORKED]}, [], (0.5,))
            for fields in (
                {"raw": {"error": "boom"}},
                {"raw": {"level": "CRITICAL"}},
                {"status": "Error"},
                {"success": False},
                {"output": {"is_error": True}},
                {"output": {"isError": True, "content": []}},
            )
        ),
        # What a tool's result says is its own affair.
        ({"timeline": [{"type": "tool", "output": {"status": "failed", "success": False}}]}, [], (1.0,)),
        (
            {"timeline": [{"type": "tool", "status": "success", "success": True, "error": None, "raw": {}}]},
            [],
            (1.0,),
        ),
        ({"observations": [WORKED, {"type": "generation", "error": "boom"}]}, [], (1.0,)),
        # What the trace says comes first, then the calls that were recorded with the answer.
        ({"timeline": [FAILED], "tool_usage": {"all_calls_successful": True}}, [], (1.0,)),
        ({"timeline": [FAILED]}, [ToolCall(name="search")], (1.0,)),
        ({"timeline": [FAILED]}, [ToolCall(name="search", error="boom")], (0.0,)),
    ],
)
def test_without_a_share_the_calls_count(
    trace: dict[str, Any], calls: list[ToolCall], shares: tuple[float, ...]
) -> None:
    assert tool_checks(trace, calls) == {"all_calls_successful": shares}


def test_a_place_without_a_value_hides_no_other_one() -> None:
    assert tool_checks({"tool_calling": None, "tool_metrics": {"proper_timing": False}}, []) == {
        "proper_timing": (0.0,)
    }
    assert tool_checks({"summary": {"raw": {"tool_usage": {"proper_timing": 0.5}}}}, []) == {"proper_timing": (0.5,)}
