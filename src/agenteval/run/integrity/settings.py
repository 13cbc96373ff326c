"""Lists how the settings of the change differ from those of the base commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval.compare.gate import FAIL_ON
from agenteval.compare.integrity.differences import shown
from agenteval.results.integrity import Difference
from agenteval.run.config.model import Config

# Larger values of these settings make it easier to pass.
_LOOSER_IF_MORE = frozenset(
    {"max_error_rate", "tolerance", "min_effect", "case_drop", "max_latency_increase", "max_cost_increase"}
)
_LOOSER_IF_LESS = frozenset({"min_pass_rate", "max_cases", "max_repeats", "screen", "alpha_aggregate", "alpha_case"})
_LOOSER = {"strict": False, "on_unchecked": "warn", "on_unjudged": "warn", "confirm": "off"}


def setting_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings of the gate that differ.

    Args:
        before: the configuration of the base commit that decides about the run.
        after: that of the change.
    """
    old, new = _gate(before), _gate(after)
    for name in (name for name in new if old[name] != new[name]):
        loosens = _loosens(name, old[name], new[name])
        yield _difference(f"gate.{name}", old[name], new[name], loosens=loosens)


def suite_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings for the suites of a configuration that differ, and affect the verdict."""
    for name in ("judge", "embeddings"):
        if getattr(before, name) != getattr(after, name):
            yield _difference(name, getattr(before, name), getattr(after, name))
    if before.criteria != after.criteria:
        yield _difference("criteria", _plain(before.criteria), _plain(after.criteria), loosens=after.criteria is None)


def _gate(config: Config) -> dict[str, Any]:
    from agenteval.run.config.gate import GateEntry

    setting = config.of_run.get("gate")
    entry = setting.value if setting is not None else GateEntry()
    found: dict[str, Any] = entry.model_dump(mode="json")
    return {**found, "fail_on": [word for word in FAIL_ON if word in entry.fail_on]}


def _difference(name: str, before: Any, after: Any, *, loosens: bool = False) -> Difference:
    return Difference(
        kind="setting", setting=name, before=shown(before), after=shown(after), effect="base", loosens=loosens
    )


def _plain(value: Any) -> Any:
    return None if value is None else repr(value)


def _loosens(name: str, before: Any, after: Any) -> bool:
    """Return whether the new value of a setting of the gate makes it easier to pass."""
    if name in {"fail_on", "must_pass"}:
        return not set(before) <= set(after)
    if name in {"quarantine", "metrics"}:
        return bool(after) and before != after
    if name in _LOOSER:
        return bool(after == _LOOSER[name])
    if name in _LOOSER_IF_MORE:
        return after is None or (before is not None and after > before)
    return name in _LOOSER_IF_LESS and (after is None or (before is not None and after < before))
