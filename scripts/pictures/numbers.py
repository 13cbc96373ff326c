"""The pictures of `docs/gate.md`, from a real run."""

from __future__ import annotations

from scripts.pictures.drawing import WIDTH, bar, dot, label, path, picture

from agenteval.results.comparison import FailedOf
from agenteval.results.model import Results

_METRIC = "f1_score"
_LEFT, _RIGHT = 20.0, WIDTH - 20.0


def scores(results: Results) -> str:
    """Draw the scores of a metric and its threshold."""
    found = [
        (score.score, score.threshold, bool(score.passed))
        for _, case in results.cases()
        for turn in case.iterations[0].turns
        for score in turn.scores
        if score.id == _METRIC and score.score is not None and score.threshold is not None
    ]
    threshold = max({limit for _, limit, _ in found}, key=[limit for _, limit, _ in found].count)
    shown = sorted((value, passed) for value, limit, passed in found if limit == threshold)
    below = sum(not passed for _, passed in shown)
    parts = [
        label(_LEFT, 26, f"{_METRIC} of {len(shown)} answers", "strong"),
        path([(_LEFT, 92), (_RIGHT, 92)], "line"),
        label(_LEFT, 116, "0"),
        label(_RIGHT, 116, "1", anchor="end"),
        path([(_place(threshold), 44), (_place(threshold), 98)], "bad"),
        label(_place(threshold), 116, f"threshold {threshold:.2f}", "bad", "middle"),
    ]
    heights: dict[int, int] = {}
    for value, passed in shown:
        column = round(_place(value) / 11)
        heights[column] = heights.get(column, 0) + 1
        parts.append(dot(column * 11, 92 - 12 * heights[column], "good" if passed else "bad"))
    parts.append(label(_LEFT, 146, "Green: at or above the threshold, passed", "good"))
    parts.append(label(_LEFT, 170, f"Red: below it, failed ({below})", "bad"))
    description = (
        f"A line from 0 to 1 with a dot for the {_METRIC} of each of {len(shown)} answers. {below} dots are below "
        f"the threshold of {threshold:.2f} and failed. The others passed."
    )
    return picture("Scores and a threshold", description, 186, parts)


def passes(results: Results) -> str:
    """Draw the iterations of a case that broke, on the base branch and here."""
    if results.comparison is None:
        raise ValueError("the run is not compared")
    cases = {case.id: case for _, case in results.cases()}
    broke = next(case for case in results.comparison.cases if case.change == "broke" and case.history)
    past = broke.history
    if past is None:
        raise ValueError("the case has no history")
    here = [iteration.status == "passed" for iteration in cases[broke.id].iterations]
    good = round(past.pass_rate * past.iterations)
    proof = next(proof for proof in results.comparison.proofs if proof.case == broke.id)
    rows = (
        ("main, last runs", [True] * good + [False] * (past.iterations - good)),
        ("here, first run", here),
        ("main, side by side", _iterations(proof.control)),
        ("here, side by side", _iterations(proof.current)),
    )
    parts, told = [label(_LEFT, 26, broke.name, "strong")], []
    for number, (name, marks) in enumerate(rows):
        y = 44 + 34 * number
        parts.append(label(_LEFT, y + 15, name, "quiet"))
        parts += [bar(164 + 22 * place, y, 18, 18, "good" if passed else "bad") for place, passed in enumerate(marks)]
        figure = f"{sum(marks)}/{len(marks)}"
        parts.append(label(_RIGHT, y + 15, figure, "strong", "end"))
        told.append(f"{name}: {sum(marks)} of {len(marks)} passed")
    parts.append(label(_LEFT, 196, "A square is one iteration; green passed, red failed", "quiet"))
    return picture("Iterations of a case that broke", f"{'; '.join(told)}.", 212, parts)


def _iterations(found: FailedOf) -> list[bool]:
    return [True] * (found.of - found.failed) + [False] * found.failed


def _place(score: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * score
