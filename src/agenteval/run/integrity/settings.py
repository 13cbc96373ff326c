"""Lists how the settings of the change differ from those of the base commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.compare.integrity.differences import shown
from agenteval.results.integrity import Difference
from agenteval.run.config.model import Config
from agenteval.run.integrity.fields import CONFIGURATION

# Larger values of these settings make it easier to pass.
_LOOSER_IF_MORE = frozenset(
    {
        "case_timeout",
        "limits.memory_mb",
        "limits.cpu_s",
        "llm.retries",
        "llm.timeout",
        *(
            f"gate.{name}"
            for name in (
                "max_error_rate",
                "tolerance",
                "min_effect",
                "max_latency_increase",
                "max_cost_increase",
            )
        ),
    }
)
_LOOSER_IF_LESS = frozenset({"gate.min_pass_rate", "gate.max_cases"})
_LOOSER = {
    "gate.strict": False,
    "gate.staged": True,
    "gate.require": None,
    "gate.on_unchecked": "warn",
    "gate.on_unjudged": "warn",
    "gate.confirm": "off",
}
# These are compared case by case.
_OF_CASES = frozenset({"iterations"})


def setting_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings of the run as a whole that differ, and affect the verdict or how it is shown.

    Args:
        before: the configuration of the base commit that decides about the run.
        after: that of the change.
    """
    yield from _written(before, after, of_run=True)


def suite_differences(before: Config, after: Config) -> Iterator[Difference]:
    """Yield the settings for the suites of a configuration that differ, and affect the verdict."""
    for name in ("judge", "embeddings"):
        if getattr(before, name) != getattr(after, name):
            yield _difference(name, getattr(before, name), getattr(after, name))
    yield from _written(before, after, of_run=False)


def _written(before: Config, after: Config, *, of_run: bool) -> Iterator[Difference]:
    from agenteval.run.config.file import RUN_KEYS, ConfigFile, written_settings

    defaults = written_settings(ConfigFile())
    for name, default in defaults.items():
        old, new = before.written.get(name, default), after.written.get(name, default)
        is_listed = CONFIGURATION[name].by != "either" and name not in _OF_CASES
        if is_listed and old != new and (name.partition(".")[0] in RUN_KEYS) == of_run:
            yield _difference(name, old, new)


def _difference(name: str, before: Any, after: Any) -> Difference:
    return Difference(
        kind="setting",
        setting=name,
        before=shown(before),
        after=shown(after),
        effect="base" if CONFIGURATION[name].by == "base" else "listed",
        loosens=_loosens(name, before, after),
    )


def _loosens(name: str, before: Any, after: Any) -> bool:
    """Return whether the new value of a setting makes it easier to pass."""
    if name in {"gate.fail_on", "gate.must_pass"}:
        return not set(before) <= set(after)
    if name in {"gate.quarantine", "gate.metrics"}:
        return bool(after) and before != after
    if name in _LOOSER:
        return bool(after == _LOOSER[name])
    if name in _LOOSER_IF_MORE:
        return after is None or (before is not None and after > before)
    return name in _LOOSER_IF_LESS and (after is None or (before is not None and after < before))


def criteria_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the conditions on whole runs that differ.

    Args:
        before: the criteria of each suite of the change in the base commit, by its path; ``None`` without any.
        after: those in the change.
    """
    found: dict[Difference, None] = {}
    for path, old in before.items():
        new = after.get(path)
        if old != new:
            texts = [None if value is None else repr(value) for value in (old, new)]
            difference = _difference("criteria", *texts).model_copy(update={"loosens": new is None})
            found[difference] = None
    yield from found
