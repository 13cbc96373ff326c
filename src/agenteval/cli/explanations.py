"""``agenteval explain``: what a metric, a setting or a word means, in the words of the documentation."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agenteval.cli.config_keys import ConfigKey, config_mappings
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text.choices import did_you_mean
from agenteval.metrics.registry import METRICS, MetricType
from agenteval.results.glossary import WORDS, Word

_MOST_NEAREST = 3
_WIDTH = 80
# Pages of the documentation, and how the kinds of words are called.
_PAGES = {"status": "docs/metrics.md"}
_GATE = "docs/gate.md"
_TITLES = {
    "verdict": "a verdict of the gate",
    "comparison": "a result of the comparison with the baseline",
    "status": "a status of a case",
    "case": "said of a case",
    "term": "a term of the gate",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be explained.

    Attributes:
        group: plural, for the list of all names.
        names: its name, and others for the same.
        lines: its explanation; made when it is asked for, because a metric is imported for it.
    """

    group: str
    names: tuple[str, ...]
    lines: Callable[[], list[str]]


def explain(name: str) -> list[str]:
    """Return what a name means: everything that has it.

    Raises:
        ConfigError: nothing has the name; the message contains the nearest names.
    """
    entries = _entries()
    asked = _plain(name)
    found = [entry for entry in entries if asked in map(_plain, entry.names)]
    if not found:
        raise ConfigError(
            Problem(f"no metric, setting or word is named {name!r}{_nearest(asked, entries)}", kind=Kind.UNKNOWN_NAME)
        )
    lines = [line for entry in found for line in ("", *entry.lines())]
    return _wrapped(lines[1:])


def all_names() -> list[str]:
    """Return a line for each group, with the names that can be explained."""
    groups: dict[str, list[str]] = {}
    for entry in _entries():
        groups.setdefault(entry.group, []).append(entry.names[0])
    return _wrapped(f"{group}: {', '.join(dict.fromkeys(names))}" for group, names in groups.items())


def _entries() -> list[Entry]:
    return [*map(_of_metric, METRICS), *_of_settings(), *map(_of_word, WORDS)]


def _wrapped(lines: Iterable[str]) -> list[str]:
    """Return lines of at most 80 columns; the rest of a longer one is indented."""
    form = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    found = []
    for line in lines:
        form.subsequent_indent = "    " if line.startswith(" ") else "  "
        found += form.wrap(line) or [""]
    return found


def _plain(name: str) -> str:
    return name.strip("`: ").casefold().replace("-", "_")


def _nearest(asked: str, entries: Iterable[Entry]) -> str:
    names = {_plain(name): name for entry in entries for name in entry.names}
    if meant := did_you_mean(asked, names.values()):
        return meant
    close = [names[item] for item in difflib.get_close_matches(asked, names, _MOST_NEAREST)]
    return f"; nearest: {', '.join(close)}" if close else "; all names: agenteval explain"


def _of_metric(metric: MetricType) -> Entry:
    return Entry("metrics", (metric.name,), lambda: list(_metric_lines(metric)))


def _metric_lines(metric: MetricType) -> Iterator[str]:
    yield f"{metric.name}: a metric ({metric.kind})"
    first = (inspect.getdoc(metric.load()) or "").partition("\n\n")[0]
    details = " ".join(first.replace("``", "`").split())
    if not details.casefold().startswith(metric.summary.casefold()):
        yield f"  {metric.summary}"
    yield f"  {details}"
    if metric.requires is None:
        yield "  needs: by its options"
    elif metric.requires:
        yield f"  needs: {', '.join(sorted(metric.requires))}"
    if metric.options:
        yield f"  options: {', '.join(metric.options)}"
    yield "  more: docs/metrics.md"


def _of_settings() -> Iterator[Entry]:
    for mapping in config_mappings():
        for key in mapping.keys:
            places = [f"{place}.{key.name}".lstrip(".") for place in mapping.places]
            yield _of_setting(key, places)


def _of_setting(key: ConfigKey, places: list[str]) -> Entry:
    def lines() -> list[str]:
        meaning = [f"  {key.meaning}"] if key.meaning else []
        default = f"; default: {key.default}" if key.default else ""
        values = f"  values: {key.values or 'any'}{default}"
        heading = f"{', '.join(places)}: a setting of agenteval.yaml"
        return [heading, *meaning, values, "  more: docs/configuration.md"]

    return Entry("settings", (key.name, *places), lines)


def _of_word(word: Word) -> Entry:
    also = [f"  also: {', '.join(word.also)}"] if word.also else []
    page = _PAGES.get(word.kind, _GATE)
    lines = [f"{word.name}: {_TITLES[word.kind]}", f"  {word.meaning}", *also, f"  more: {page}"]
    return Entry("words", (word.name, *word.also), lambda: lines)
