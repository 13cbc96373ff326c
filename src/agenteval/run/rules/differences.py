"""Pairs the cases of the change with those of the base commit, and lists what differs and who decides it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from agenteval.core.records import asdict, dataclass, field
from agenteval.core.secrets import shortened
from agenteval.gate.integrity import digest_of, renamed
from agenteval.results.model import Difference, DifferenceKind
from agenteval.suite.model import OVERALL, Case, MetricConfig

# Maximum number of characters of a value.
_LONGEST = 200
# More new cases than these are counted, not listed.
_MOST_NEW = 20


@dataclass(frozen=True)
class Pairs:
    """The cases of the change and those of the base commit, by their ids.

    Attributes:
        base: the base commit's version by the id of the case in the change.
    """

    ours: Mapping[str, Case] = field(default_factory=dict)
    theirs: Mapping[str, Case] = field(default_factory=dict)
    base: Mapping[str, Case] = field(default_factory=dict)

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """The old id by the new id."""
        return {case_id: case.id for case_id, case in self.base.items() if case.id != case_id}

    @cached_property
    def edited(self) -> frozenset[str]:
        """The ids of cases that ask or expect something else than in the base commit."""
        return frozenset(case_id for case_id, theirs in self.base.items() if _is_edited(self.ours[case_id], theirs))

    @cached_property
    def new(self) -> Collection[str]:
        """The ids of the cases that the base commit does not have, in order."""
        return [case_id for case_id in self.ours if case_id not in self.base]

    @cached_property
    def removed(self) -> Mapping[str, Case]:
        """The base commit's cases that the change does not have, by id."""
        taken = {case.id for case in self.base.values()}
        return {case_id: case for case_id, case in self.theirs.items() if case_id not in taken}


def pair(ours: Iterable[Case], base: Iterable[Case]) -> Pairs:
    """Pair the cases of the change with those of the base commit: by id, else by fingerprint."""
    now, then = {case.id: case for case in ours}, {case.id: case for case in base}
    before = {case_id: digest_of(case.fingerprints) for case_id, case in then.items() if case_id not in now}
    after = {case_id: digest_of(case.fingerprints) for case_id, case in now.items() if case_id not in then}
    old_ids = {new: old for old, new in renamed(before, after, ()).items()}
    found = {case_id: then[old_ids.get(case_id, case_id)] for case_id in now if case_id in then or case_id in old_ids}
    return Pairs(now, then, found)


def _is_edited(ours: Case, theirs: Case) -> bool:
    return ours.fingerprints.question != theirs.fingerprints.question or _expected(ours) != _expected(theirs)


def _expected(case: Case) -> list[object]:
    return [(turn.ground_truth, turn.retrieval_context, dict(turn.config)) for turn in case.turns]


Looser = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Standing:
    """Who decides a value in a run that a base commit judges.

    Attributes:
        by: ``base``: the value of the base commit counts. ``change``: that of the change, and the list shows it.
            ``either``: that of the change, which cannot change a verdict.
        why: the reason, if the base commit does not decide.
        looser: whether it is easier to pass with the second value than with the first.
        is_shown: whether the list has the values; some can contain anything, for instance a password.
    """

    by: Literal["base", "change", "either"] = "base"
    why: str = ""
    looser: Looser | None = None
    is_shown: bool = True


def _more(before: Any, after: Any) -> bool:
    return after is None or (before is not None and after > before)


def _less(before: Any, after: Any) -> bool:
    return after is None or (before is not None and after < before)


def _without(before: Any, after: Any) -> bool:
    return not set(before) <= set(after)


def _equal(value: object) -> Looser:
    return lambda _, after: bool(after == value)


_BASE = Standing()
_TESTED = Standing("change", "it defines the agent, which the run evaluates")
_HIDDEN = Standing("change", _TESTED.why, is_shown=False)
_LABEL = Standing("either", "it is a name or a place for people")
_SPEED = Standing("either", "it changes how fast a run is, not what is asked and how it is scored")
_PROGRAM = Standing("either", "files cannot contain it: a program sets it, and such a run has no base commit")
_MASKS = Standing("either", "it only masks more")
_MORE, _LESS = Standing(looser=_more), Standing(looser=_less)
_IF_OFF, _IF_GONE = Standing(looser=_equal(False)), Standing(looser=_equal(None))
_IF_ANY, _IF_SHORTER = Standing(looser=lambda _, after: bool(after)), Standing(looser=_without)

#: Who decides each value that a change can write, by its kind and name; the base commit decides what is not here.
#:
#: A test compares the table with the models. A new field needs an entry, and the code that the entry promises. The
#: inputs of the action are in the workflow file, whose changes are listed. Files that they name are read in the base
#: commit.
STANDINGS: Mapping[str, Standing] = {
    # A key of `agenteval.yaml`.
    "setting.agents": Standing("change", "by key, as in `agent.`"),
    "setting.tools": Standing("change", "by key, as in `agent.`"),
    "setting.judge": _BASE,
    "setting.embeddings": _BASE,
    "setting.metrics": _BASE,
    "setting.criteria": _IF_GONE,
    "setting.personas": _BASE,
    "setting.tags": _BASE,
    "setting.iterations": Standing("either", "it is listed case by case, where the base commit decides"),
    "setting.concurrency": _SPEED,
    "setting.case_timeout": _MORE,
    "setting.time_limit": Standing("either", "a run that it ends is unproven"),
    "setting.pass_env": Standing("change", "it adds variables to the agent and to graders, and changes no rule"),
    "setting.secrets": _MASKS,
    "setting.limits.memory_mb": _MORE,
    "setting.limits.cpu_s": _MORE,
    "setting.max_answer_bytes": Standing("either", "metrics read the whole answer"),
    "setting.templates.comment": _BASE,
    "setting.templates.summary": _BASE,
    "setting.reports": Standing("either", "they are written after the decision, into separate files"),
    "setting.gate.fail_on": _IF_SHORTER,
    "setting.gate.max_error_rate": _MORE,
    "setting.gate.strict": _IF_OFF,
    "setting.gate.must_pass": _IF_SHORTER,
    "setting.gate.quarantine": _IF_ANY,
    "setting.gate.metrics": _IF_ANY,
    "setting.gate.resources": _BASE,
    "setting.gate.pairs": _LESS,
    "setting.gate.first": _BASE,
    "setting.gate.require": _IF_GONE,
    "setting.gate.on_missing_baseline": Standing(looser=_equal("warn")),
    "setting.llm.max_calls": _BASE,
    "setting.llm.max_cost_usd": _BASE,
    "setting.llm.cache": Standing("either", "a reply in it is used only if this repository's key has sealed it"),
    "setting.llm.cache_agents": _BASE,
    "setting.llm.concurrency": _SPEED,
    "setting.llm.requests_per_minute": _SPEED,
    "setting.llm.retries": _MORE,
    "setting.llm.backoff": _SPEED,
    "setting.llm.timeout": _MORE,
    # An attribute of `AgentSpec`: an agent or a tool. Its interpreter is an option; that of graders is the base
    # commit's.
    "agent.kind": _TESTED,
    "agent.target": _TESTED,
    "agent.directory": _HIDDEN,
    "agent.timeout": _MORE,
    "agent.concurrency": _SPEED,
    "agent.retries": _BASE,
    "agent.config": _HIDDEN,
    "agent.env": _HIDDEN,
    "agent.options": _HIDDEN,
    "agent.where": _LABEL,
    "agent.function": _PROGRAM,
    "agent.control": _BASE,
    # An attribute of `Suite`, to which all formats convert their files.
    "suite.path": Standing(
        "either", "cases are paired by their content too, and keep the rules of the suite they were in"
    ),
    "suite.name": _LABEL,
    "suite.format": _LABEL,
    "suite.cases": Standing("change", "case by case: removed, renamed, edited and new ones are listed"),
    "suite.root": _TESTED,
    "suite.agent": _TESTED,
    "suite.fallback_agent": _TESTED,
    "suite.concurrency": _SPEED,
    "suite.iterations": _BASE,
    "suite.turn_timeout_s": _BASE,
    "suite.retrieval_tools": _BASE,
    "suite.metrics": _BASE,
    "suite.aggregate": _BASE,
    "suite.evaluation": _BASE,
    "suite.warnings": _LABEL,
    "suite.secrets": _MASKS,
    # An attribute of `Case`, of a case that the base commit has too.
    "case.id": Standing("change", "a renamed case is listed; the patterns of the base commit also match its old id"),
    "case.name": Standing("either", "the patterns of the base commit also match its old name"),
    "case.turns": _BASE,
    "case.tags": _BASE,
    "case.cluster": _BASE,
    "case.line": _LABEL,
    "case.iterations": _LESS,
    "case.metrics": _BASE,
    "case.strict": _IF_OFF,
    "case.target": _TESTED,
    "case.persona": _BASE,
    "case.aggregate": _BASE,
    # A metric, as a whole and by its settings.
    "metric.": _IF_GONE,
    "metric.threshold": _LESS,
    "metric.gating": _IF_OFF,
    "metric.fail_on_error": _IF_OFF,
}

#: Values by what they are called in the list: the kind, the metric and the name.
Document = Mapping[tuple[DifferenceKind, str, str], Any]


def diff(before: Document, after: Document) -> Iterator[Difference]:
    """Yield the values that differ and can matter, with who decides them.

    Args:
        before: the values in the base commit.
    """
    for path in dict.fromkeys((*before, *after)):
        kind, metric, name = path
        old, new = before.get(path), after.get(path)
        standing = STANDINGS.get(f"{kind}.{name}", _BASE)
        # Of a metric that is there only once, its settings tell nothing.
        is_part = bool(name) and ((kind, metric, "") in before) != ((kind, metric, "") in after)
        if old == new or standing.by == "either" or is_part:
            continue
        yield Difference(
            kind=kind,
            metric=metric or None,
            setting=name or None,
            before=shown(old) if standing.is_shown else None,
            after=shown(new) if standing.is_shown else None,
            effect="base" if standing.by == "base" else "listed",
            loosens=standing.looser is not None and standing.looser(old, new),
        )


def grouped(found: Iterable[tuple[str, Difference]]) -> Iterator[Difference]:
    """Yield the differences of cases, which are given with the case's id; equal ones of several cases are one."""
    groups: dict[Difference, list[str]] = {}
    for case_id, difference in found:
        groups.setdefault(difference, []).append(case_id)
    for difference, ids in groups.items():
        which: dict[str, object] = {"case": ids[0]} if len(ids) == 1 else {"cases": len(ids)}
        yield difference.model_copy(update=which)


def case_differences(
    pairs: Pairs, passing: Collection[str], iterations: Mapping[str, int], iterations_of_base: Mapping[str, int]
) -> Iterator[Difference]:
    """Yield the differences of cases, then those of metrics.

    Args:
        passing: ids of the cases that passed in the baseline.
        iterations: how often each case of the change runs, by its id; the other ones are those of the base commit.
    """
    for case_id, case in pairs.removed.items():
        effect: Literal["unproven", "listed"] = "unproven" if case_id in passing else "listed"
        digest = digest_of(case.fingerprints)
        yield Difference(kind="removed", case=case_id, before=case.name, effect=effect, fingerprint=digest)
    for new, old in pairs.renamed.items():
        yield Difference(kind="renamed", case=new, before=old, after=new, effect="paired")
    for case_id in (case_id for case_id in pairs.ours if case_id in pairs.edited):
        ours = pairs.ours[case_id]
        changed = next(diff(_question(pairs.base[case_id]), _question(ours)), None)
        edited = changed or Difference(kind="edited", setting="files", effect="base")
        yield edited.model_copy(update={"case": case_id, "fingerprint": digest_of(ours.fingerprints)})
    if len(pairs.new) > _MOST_NEW:
        yield Difference(kind="new", cases=len(pairs.new), effect="absolute")
    else:
        yield from (Difference(kind="new", case=case_id, effect="absolute") for case_id in pairs.new)
    yield from grouped(
        (case_id, found)
        for case_id, theirs in pairs.base.items()
        for found in diff(
            case_document(theirs, iterations_of_base[theirs.id]),
            case_document(pairs.ours[case_id], iterations[case_id]),
        )
    )


def _question(case: Case) -> Document:
    found: dict[tuple[DifferenceKind, str, str], Any] = {}
    for place, turn in enumerate(case.turns):
        of_turn = f" of turn {place + 1}" if len(case.turns) > 1 else ""
        for name in ("input", "ground_truth", "retrieval_context", "context", "config"):
            value = getattr(turn, name)
            found["edited", "", f"{name}{of_turn}"] = dict(value) if isinstance(value, Mapping) else value
    return found


def case_document(case: Case, iterations: int) -> Document:
    """Return what decides about a case, besides its question."""
    found: dict[tuple[DifferenceKind, str, str], Any] = {
        ("case", "", "iterations"): iterations,
        ("case", "", "strict"): case.strict,
        ("metric", OVERALL, "aggregation"): None if case.aggregate is None else asdict(case.aggregate),
    }
    for metric in case.all_metrics:
        found |= _metric(metric)
    return found


def _metric(metric: MetricConfig) -> Document:
    found: dict[tuple[DifferenceKind, str, str], Any] = {("metric", metric.id, ""): "there"}
    for name in ("threshold", "type", "response_path", "gating", "fail_on_error"):
        found["metric", metric.id, name] = getattr(metric, name)
    return {**found, **{("metric", metric.id, name): value for name, value in metric.options.items()}}


def shown(value: Any) -> str | None:
    """Return a value as a short text of one line; ``None`` for none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return shortened(value, _LONGEST)
    if isinstance(value, int | float):
        return f"{value:g}"
    label = getattr(value, "label", None)
    if isinstance(label, str):
        return shortened(label, _LONGEST)
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError):
        # An object of the program can contain anything, for instance the key of a model.
        return f"#{hashlib.sha256(repr(value).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return shortened(text, _LONGEST)
