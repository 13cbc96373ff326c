from __future__ import annotations

from typing import Any

import pytest
from tests.unit.report import samples

from agenteval.report.view import notes as basis
from agenteval.results.comparison import ComparedMetric, Comparison


def _comparison(policy: dict[str, Any] | None = None, **drops: float | None) -> Comparison:
    base = samples.regressed().results.comparison
    assert base is not None
    metrics = [
        ComparedMetric(
            id=name, n=9, baseline=1.0, current=1.0, difference=0.0, verdict="unchanged", reason="", gating=True,
            detectable_drop=drop,
        )
        for name, drop in drops.items()
    ]  # fmt: skip
    return base.model_copy(update={"metrics": metrics, "policy": policy or {}})


@pytest.mark.parametrize(
    ("created", "now", "words"),
    [
        ("2026-11-20T09:00:00Z", "2026-11-23T09:00:00Z", "3 days old"),
        ("2026-11-20T09:00:00+02:00", "2026-11-20T08:30:00Z", "1 hour old"),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:59:59Z", "59 minutes old"),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z", "less than a minute old"),
        ("2026-11-20T09:00:00Z", "2026-11-20T08:00:00Z", ""),
        ("2026-11-20T09:00:00", "2026-11-20T08:00:00Z", ""),
        ("yesterday", "2026-11-20T08:00:00Z", ""),
        ("", "", ""),
    ],
)
def test_the_age_of_a_baseline(created: str, now: str, words: str) -> None:
    assert basis.age(created, now) == words


def test_how_often_the_cases_ran() -> None:
    assert basis.repetitions(samples.green().results) == "1 iteration"
    regressed = samples.regressed().results
    assert basis.repetitions(regressed) == "1 to 3 iterations"
    compared = regressed.model_copy(update={"comparison": _comparison({"baseline_runs": 5})})
    assert basis.repetitions(compared) == "1 to 3 iterations, 5 baseline runs"
    assert basis.repetitions(samples.results()) == ""


def test_the_smallest_drop() -> None:
    assert basis.smallest_drops(_comparison()) == ""
    assert basis.smallest_drops(_comparison(bleu=None)) == ""
    assert basis.smallest_drops(_comparison(bleu=0.05)) == "a drop of 5 points would be detected"
    assert basis.smallest_drops(_comparison(bleu=0.05, f1=0.0501)) == "a drop of 5 points would be detected"
    assert basis.smallest_drops(_comparison(e=0.05, d=0.04, c=0.03, b=0.02, a=0.01)) == (
        "a drop of 1 point in a, 2 points in b, 3 points in c, and 2 more metrics would be detected"
    )


def test_conditions_of_the_gate() -> None:
    told = {
        confirm: " ".join(basis.gate_needs(_comparison({"name": "statistics", "confirm": confirm})))
        for confirm in ("against-base", "rerun", "off")
    }
    assert told["against-base"].endswith("is proven worse side by side with the base commit.")
    assert "so drift cannot be told from regression" in told["rerun"]
    assert told["off"].startswith("Nothing ran again")
    assert basis.gate_needs(_comparison({"name": "mean-drop", "tolerance": 0.02})) == (
        "The gate fails if a metric's mean drops by more than 2 points.",
    )
    assert "any case that passed now fails" in basis.gate_needs(_comparison({"name": "any-flip"}))[0]
    assert basis.gate_needs(_comparison({"name": "threshold", "reason": "too small"})) == (
        "The gate checks only the share of passed cases: too small.",
    )
    assert basis.gate_needs(_comparison()) == ()
