"""Formats the figures of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval.results.analysis.criteria import Check

_TIMES = frozenset({"avg_response_time", "max_response_time"})
_MOST_DECIMALS = 6


def check_label(check: Check) -> str:
    """Return the name of a criterion in reports: ``max response time``, ``quality: intent recognition``."""
    prefixes = {"performance": "", "quality": "quality: ", "functionality": "tool calls: "}
    return f"{prefixes[check.section]}{check.key.replace('_', ' ')}"


def check_texts(check: Check) -> tuple[str, str]:
    """Return the value and the limit of a criterion: ``1.84 s`` and ``at most 2.00 s``.

    Both have enough decimals to differ visibly if they differ.
    """
    texts = "–", _limit(check, 0)
    if check.value is not None:
        for more in range(_MOST_DECIMALS):
            texts = _write(check, check.value, more), _limit(check, more)
            if check.met or texts[0] != _write(check, check.threshold, more):
                break
    return texts


def _limit(check: Check, more: int) -> str:
    if check.section == "functionality" or (check.section == "performance" and check.key == "all_traces_successful"):
        return "all"
    return f"{'at least' if check.section == 'quality' else 'at most'} {_write(check, check.threshold, more)}"


def _write(check: Check, value: float, more: int) -> str:
    if check.section == "quality":
        return f"{value:.{3 + more}f}"
    if check.section == "performance" and check.key in _TIMES:
        return seconds(1000 * value, more)
    return percent(value, more)


def percent(share: float, more: int = 0) -> str:
    """Format a share with one decimal or ``more``. Only a share of 1 is 100.0%, and only 0 is 0.0%."""
    decimals = 1 + more
    text = f"{share:.{decimals}%}"
    least = f"{10.0**-decimals:.{decimals}f}%"
    if float(text[:-1]) == 100 and share < 1:
        return f">{100 - 10.0**-decimals:.{decimals}f}%"
    return f"<{least}" if float(text[:-1]) == 0 and share > 0 else text


def seconds(milliseconds: float, more: int = 0) -> str:
    """Format a latency: ``840 ms``, ``12.30 s``, with ``more`` decimals if needed."""
    if round(milliseconds) < 1000:
        return f"{milliseconds:.{more}f} ms"
    return f"{milliseconds / 1000:,.{2 + more}f} s"
