"""Derives what a sentence about a mean must say from its figures, and the other way round."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agenteval.results.comparison import ComparedMetric

_NUMBER = r"([+−]?\d+(?:\.\d+)?)"
_POINTS = r"(\d+(?:\.\d+)?) points?"
_P = r"p (=|<) ([\d.e-]+), needed ≤ ([\d.e-]+)"
_BESIDE = r"(?:side by side with [\w ]+|beside the baseline's runs)"
_LOOKED = rf"the first run of .+ looked worse(?: than the newest earlier run)? \({_NUMBER} points\)"
_SCORED = rf"(?:.+ )?(fell|rose): {_BESIDE} it scored {_POINTS} (less|more)"
_DOUBT = r"(?:, but .*|, if lost iterations count as failures)?"
_INTERVAL = rf"between {_NUMBER} and {_NUMBER}"
_EXCLUDED = r"(?:; worse by more than [\d.]+ points? is excluded \(95 %\))?"
#: Every sentence about a mean; its groups are what it claims.
_FORMS = {
    "moved": rf"{_SCORED} \((\d+) runs? a side; at least {_POINTS}, {_P}\){_DOUBT}",
    "carried": rf"{_SCORED} \((\d+) runs? a side; {_INTERVAL}\), "
    r"which is at least half of what an earlier attempt was proven to have lost",
    "earlier": rf"(?:.+ )?(fell|rose): it scored {_POINTS} (less|more) than in \d+ earlier runs?(?: \({_P}\))?"
    rf"{_DOUBT}",
    "repeated": rf"(?:.+ )?(fell|rose) by {_POINTS}; all scores repeat exactly on both sides{_DOUBT}",
    "second": rf"{_LOOKED}; a second run did not confirm it \({_NUMBER}\)",
    "both": rf"{_LOOKED}; both runs together do not prove it \({_NUMBER}\)",
    "beside": rf"{_LOOKED}; {_BESIDE} that is not proven \({_NUMBER}, {_INTERVAL}\){_EXCLUDED}",
    "unmoved": rf"(?:.+ )?is not proven to change {_BESIDE} \({_NUMBER}, {_INTERVAL}\){_EXCLUDED}",
    "small": rf"(?:.+: )?{_BESIDE} it moved by less than {_POINTS}, which does not count \({_NUMBER}, {_INTERVAL}\)",
    "open": rf"{_LOOKED}, which was (?:not checked|neither proven nor cleared)",
    "like before": rf"(?:.+ )?{_NUMBER}, base {_NUMBER} \(\d+ runs?\)(?:; worse by more than {_POINTS} is excluded "
    rf"\(95 %\))?(?:; looks better \({_NUMBER} points in one run\))?",
}
_HALF_A_TENTH = 0.0501


@dataclass(frozen=True)
class Figures:
    """What an outlet shows about a mean, in points; ``None`` for what it does not show."""

    verdict: str
    difference: float
    interval: tuple[float, float] | None = None
    p: float | None = None
    limit: float | None = None
    bound: float | None = None
    first: float | None = None
    earlier: float | None = None
    #: What the last digit shown stands for.
    precision: float = _HALF_A_TENTH

    @classmethod
    def of(cls, metric: ComparedMetric) -> Figures:
        """The figures in results.json."""
        return cls(
            verdict=metric.verdict,
            difference=100 * metric.difference,
            interval=None if metric.interval is None else (100 * metric.interval[0], 100 * metric.interval[1]),
            p=metric.p,
            limit=metric.limit,
            bound=None if metric.bound is None else 100 * metric.bound,
            first=None if metric.first is None else 100 * metric.first,
            earlier=None if metric.earlier is None else 100 * metric.earlier,
        )


def form_of(sentence: str) -> tuple[str, re.Match[str]]:
    """Return the form of a sentence about a mean."""
    for form, pattern in _FORMS.items():
        if found := re.fullmatch(pattern, sentence):
            return form, found
    raise AssertionError(f"no sentence about a mean reads so: {sentence}")


def check(sentence: str, shown: Figures) -> None:
    """Fail if a sentence and the figures beside it contradict each other."""
    form, found = form_of(sentence)
    groups = found.groups()
    where = f"{form}: {sentence} | {shown}"
    proven = form in {"moved", "carried", "earlier", "repeated"}
    assert proven == (shown.verdict in {"regressed", "improved"}) or (proven and shown.verdict == "unproven"), where
    _check_figures(form, shown, where)
    if proven:
        fell = groups[0] == "fell"
        assert fell == (shown.difference < 0), where
        assert shown.verdict != ("improved" if fell else "regressed"), where
        _same(groups[1], abs(shown.difference), shown, where)
    if form == "moved":
        assert shown.interval is not None, where
        _same(groups[4], min(map(abs, shown.interval)), shown, where)
        _check_p(groups[5:8], shown, where)
    if form == "earlier" and groups[3]:
        _check_p(groups[3:6], shown, where)
    if form in {"second", "both", "beside", "open"}:
        assert _value(groups[0]) <= 0, where
    if form in {"second", "both"}:
        _same(groups[1], shown.difference, shown, where)
    if form in {"beside", "unmoved", "small", "carried"}:
        assert shown.interval is not None, where
        for said, figure in zip(groups[-2:], shown.interval, strict=True):
            _same(said, figure, shown, where)
    if form == "like before":
        assert (groups[2] is None) or shown.bound is None or abs(_value(groups[2]) - shown.bound) < shown.precision
        assert (groups[2] is None) == (shown.bound is None) or shown.precision > _HALF_A_TENTH, where
        for said, mean in zip(groups[:2], (shown.first, shown.earlier), strict=True):
            assert mean is None or abs(_value(said) - mean) < shown.precision, where


def _check_figures(form: str, shown: Figures, where: str) -> None:
    """Check what holds for the figures of every form."""
    assert (shown.p is None) == (shown.limit is None), where
    if shown.p is not None and shown.limit is not None:
        is_low = shown.p <= shown.limit
        assert is_low == (form in {"moved", "earlier", "small"}), where
        if shown.interval is not None:
            low, high = shown.interval
            is_away = low > 0 if shown.verdict == "improved" else high < 0
            assert is_away == is_low or abs(low) < shown.precision or abs(high) < shown.precision, where
    # The figures of a screen or a second run are never shown as those of a proof.
    if form in {"second", "like before", "repeated", "carried"}:
        assert shown.p is None, where
    if form not in {"moved", "carried", "beside", "unmoved", "small", "open"}:
        assert shown.interval is None, where
    if form != "like before":
        assert shown.bound is None, where


def _check_p(said: tuple[str, ...], shown: Figures, where: str) -> None:
    sign, p, limit = said
    assert shown.p is not None, where
    assert shown.limit is not None, where
    assert float(limit) == shown.limit, where
    assert shown.p <= float(p) if sign == "<" else abs(float(p) - shown.p) <= 0.051 * shown.p, where
    assert float(p) <= float(limit), where


def _same(said: str, figure: float, shown: Figures, where: str) -> None:
    assert abs(_value(said) - figure) < shown.precision, where


def _value(text: str) -> float:
    return float(text.replace("−", "-"))
