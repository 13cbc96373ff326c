"""Formats the figures of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval.results.analysis.criteria import Check
    from agenteval.results.case import Criterion

_SHARES_OF_ALL = ("tool_calling.", "all_traces_successful")
_TIMES = frozenset({"avg_response_time", "max_response_time"})
_MOST_DECIMALS = 6


def check_label(check: Check) -> str:
    """Return the name of a criterion in reports: ``max response time``, ``quality: intent recognition``."""
    prefixes = {"performance": "", "quality": "quality: ", "functionality": "tool calls: "}
    return f"{prefixes[check.section]}{check.key.replace('_', ' ')}"


def criterion_texts(criterion: Criterion) -> tuple[str, str]:
    """Return the value and the limit of a criterion: ``1.84 s`` and ``at most 2.00 s``.

    Both have enough decimals to differ visibly if they differ.
    """
    value, threshold = criterion.value, criterion.threshold
    if threshold is None:
        return "–" if value is None else _write(criterion, value, 0), "–"
    texts = "–", _limit(criterion, threshold, 0)
    if value is not None:
        for more in range(_MOST_DECIMALS):
            texts = _write(criterion, value, more), _limit(criterion, threshold, more)
            is_exact = not set("<>") & set(texts[1])
            if is_exact and (criterion.met or texts[0] != _write(criterion, threshold, more)):
                break
    return texts


def _limit(criterion: Criterion, threshold: float, more: int) -> str:
    if criterion.name.startswith(_SHARES_OF_ALL):
        return "all"
    return f"{'at least' if _is_quality(criterion) else 'at most'} {_write(criterion, threshold, more)}"


def _write(criterion: Criterion, value: float, more: int) -> str:
    if _is_quality(criterion):
        return f"{value:.{3 + more}f}"
    return seconds(1000 * value, more) if criterion.name in _TIMES else percent(value, more)


def _is_quality(criterion: Criterion) -> bool:
    return criterion.name.startswith("quality.")


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
    if 0 < milliseconds < 0.5 and not more:
        return "<1 ms"
    if round(milliseconds) < 1000:
        return f"{milliseconds:.{more}f} ms"
    return f"{milliseconds / 1000:,.{2 + more}f} s"
