"""The pictures of `docs/gate.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from benchmarks.gate.cells import read_tables
from scripts.pictures.drawing import WIDTH, bar, dot, label, path, picture, span
from scripts.pictures.simulated import PullRequest, pull_request

_HARMLESS, _WORSE = (171, "none"), (22, "mean 8")
_USUAL = 7
_PULL_REQUESTS = 400
# Cells of the simulation's table of power: 50 cases with three iterations, if nothing else is named.
_CHANGES = {
    "one to 0": "one case now always fails",
    "mean 10": "the mean drops by 10 points",
    "mean 5": "the mean drops by 5 points",
    "iterations 5, mean 5": "the same with 5 iterations instead of 3",
    "cases 200, mean 5": "the same with 200 cases instead of 50",
    "cases 20, mean 5": "the same with 20 cases",
    "one to 0.5": "one case now fails every second time",
}
_LEFT, _RIGHT = 20.0, WIDTH - 20.0


@cache
def _made(seed: int, change: str) -> PullRequest:
    return pull_request(seed, change)


def suspicion() -> str:
    """Draw the means of earlier runs, and of the first runs of two changes."""
    stories = (
        ("A harmless change: like before", _made(_USUAL, "none")),
        ("A worse change: suspicious", _made(*_WORSE)),
    )
    parts: list[str] = []
    for number, (title, found) in enumerate(stories):
        top = 26 + 92 * number
        earlier = [found.mean(run) for run in found.evidence.pool]
        first = found.mean(found.evidence.first)
        kind = "bad" if any(finding.suspicious for finding in found.decision.metrics) else "good"
        low, high = min([*earlier, first]) - 1, max([*earlier, first]) + 1

        def place(mean: float, low: float = low, high: float = high) -> float:
            return _LEFT + (_RIGHT - _LEFT) * (mean - low) / (high - low)

        inside = place(min(earlier)) - 8, place(max(earlier)) + 8
        parts += [
            label(_LEFT, top, title, "strong"),
            bar(inside[0], top + 16, inside[1] - inside[0], 26, "band"),
            *(dot(place(mean), top + 29, "same") for mean in earlier),
            dot(place(first), top + 29, kind),
            label(place(first), top + 62, f"this change {first:.1f}", kind, _anchor(place(first))),
        ]
    parts.append(label(_LEFT, 214, "Blue: scores of ten earlier runs; right is better", "quiet"))
    description = (
        "Two rows of dots. Each has the mean scores of ten earlier runs in blue. In the first row, the run of a "
        "harmless change lies among them. In the second row, the run of a worse change lies below all of them, so it "
        "is suspicious."
    )
    return picture("What raises a suspicion", description, 230, parts)


def proof() -> str:
    """Draw the interval of the difference after each test side by side, for a worse and a harmless change."""
    parts, top = [], 26.0
    for title, story, verdict, kind in (
        ("A worse change", _WORSE, "proven: all of it is worse", "bad"),
        ("A harmless change", _HARMLESS, "cleared: not clearly worse", "good"),
    ):
        intervals = _made(*story).intervals()
        parts.append(label(_LEFT, top, title, "strong"))
        bottom = top + 8 + 30 * len(intervals)
        parts.append(path([(_place(0), top + 8), (_place(0), bottom)], "line"))
        for number, interval in enumerate(intervals, start=1):
            y = top - 7 + 30 * number
            is_last = number == len(intervals)
            parts.append(label(_LEFT, y + 5, "1 run a side" if number == 1 else f"{number} runs a side", "quiet"))
            low, middle, high = map(_place, interval)
            parts += span(low, middle, high, y, kind if is_last else "same")
        parts.append(label(_place(0), bottom + 18, "no difference", "quiet", "middle"))
        parts.append(label(_LEFT, bottom + 18, verdict, kind))
        top = bottom + 54
    description = (
        "Lines show how far the change may be from the base commit, after one and more runs of both side by side. "
        "They become shorter. For the worse change, all of the last line is on the worse side of no difference: the "
        "drop is proven. For the harmless change, the last line is on both sides, and the suspicion is dropped."
    )
    return picture("What proves a regression", description, top - 22, parts)


def cost() -> str:
    """Draw where harmless changes end, and what each end costs."""
    ends = Counter(_end(_made(seed, "none")) for seed in range(_PULL_REQUESTS))
    kinds = ("nothing more", "a few calls", "up to a run", "2 to 8 runs", "blocked by mistake")
    texts = {
        "nothing more": "nothing runs again",
        "a few calls": "single cases run again: a few calls",
        "up to a run": "the suite runs again: up to a run",
        "2 to 8 runs": "both sides run: 2 to 8 runs",
        "blocked by mistake": "blocked by mistake",
    }
    parts = [label(_LEFT, 26, f"{_PULL_REQUESTS} harmless pull requests", "strong")]
    for number, end in enumerate(kinds):
        y = 52 + 46 * number
        length = (_RIGHT - _LEFT - 60) * ends[end] / max(ends.values())
        kind = "bad" if number == len(kinds) - 1 else "same"
        parts += [
            label(_LEFT, y, texts[end]),
            bar(_LEFT, y + 7, max(length, 1.5), 14, kind),
            label(_LEFT + length + 8, y + 19, str(ends[end]), "strong"),
        ]
    counted = "; ".join(f"{texts[end]}: {ends[end]}" for end in kinds)
    return picture("What the gate costs", f"Of {_PULL_REQUESTS} harmless pull requests. {counted}.", 278, parts)


def _end(found: PullRequest) -> str:
    decision = found.decision
    if decision.verdict == "regressed":
        return "blocked by mistake"
    if decision.looks:
        return "2 to 8 runs"
    if any(finding.suspicious for finding in decision.metrics):
        return "up to a run"
    return "a few calls" if decision.cost.calls else "nothing more"


def limits() -> str:
    """Draw how often worse changes are found, from the expected figures of the simulation."""
    (power,) = (table for table in read_tables() if table.key == "B")
    found = {row.name: 100 * row.expected["found"] for row in power.rows}
    parts, told = [label(_LEFT, 26, "How often a worse change is found", "strong")], []
    for number, (cell, text) in enumerate(_CHANGES.items()):
        y = 52 + 46 * number
        length = (_RIGHT - _LEFT - 60) * found[cell] / 100
        share = f"{found[cell]:.0f} %"
        parts += [
            label(_LEFT, y, text),
            bar(_LEFT, y + 7, _RIGHT - _LEFT - 60, 14, "band"),
            bar(_LEFT, y + 7, length, 14, "same"),
            label(_RIGHT, y + 19, share, "strong", "end"),
        ]
        told.append(f"{text}: {share}")
    return picture("What the gate cannot see", f"{'; '.join(told)}.", 48 + 46 * len(_CHANGES), parts)


def _place(points: float) -> float:
    """Return where a difference stands: -16 to 6 points."""
    return 140 + (_RIGHT - 140) * (points + 16) / 22


def _anchor(x: float) -> str:
    return "start" if x < WIDTH / 3 else "end" if x > 2 * WIDTH / 3 else "middle"


PICTURES: Mapping[str, Callable[[], str]] = {
    "gate-suspicion": suspicion,
    "gate-proof": proof,
    "gate-cost": cost,
    "gate-limits": limits,
}
