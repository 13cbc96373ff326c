"""How a run was made: its size, baseline, suites, limits and rules, and how these differ from the base commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass
from agenteval.report import words
from agenteval.report.metrics import Base
from agenteval.report.parts import Part, table
from agenteval.report.words import NOTHING, count, moment, short_commit
from agenteval.results.case import CaseResult, Score
from agenteval.results.model import Coverage, Difference, Results, Run
from agenteval.results.store import Archive

_MOST_ROWS = 200
_LONGEST = 80


def size(results: Results) -> str:
    """Return ``118 cases × 3``: the number of cases and of their iterations."""
    numbers = {case.planned for suite in results.suites for case in suite.cases if case.iterations}
    cases = count(results.summary.cases, "case")
    if not numbers or max(numbers) == 1:
        return cases
    fewest, most = min(numbers), max(numbers)
    times = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{cases} × {times}{_unneeded(results)}"


def _unneeded(results: Results) -> str:
    cases = [case for suite in results.suites for case in suite.cases]
    unneeded, planned = sum(case.unneeded for case in cases), sum(case.planned for case in cases)
    return f" ({unneeded:,} of {planned:,} were not needed)" if unneeded else ""


def metric_errors(results: Results) -> tuple[str, ...]:
    """Return the first error of each metric if its errors did not decide their cases; no other part shows them."""
    first: dict[str, str] = {}
    cases: dict[str, set[str]] = {}
    for suite in results.suites:
        for case in suite.cases:
            for score in _broken_scores(case) if case.status != "error" else ():
                first.setdefault(score.id, words.score_reason(score))
                cases.setdefault(score.id, set()).add(case.id)
    return tuple(
        f"{name} could not be computed in {count(len(cases[name]), 'case')}: {first[name]}" for name in first
    )


def _broken_scores(case: CaseResult) -> list[Score]:
    return [score for score in case.scores if score.status == "error"]


def run_setup(
    results: Results, archive: Archive, base: Base | None, differences: Sequence[IntegrityRow]
) -> tuple[Part, ...]:
    """Return the parts about the making of the run; empty ones are left out."""
    parts = (
        Part("the-run", "The run", facts=tuple(_known(_run(results)))),
        _baseline(base) if base else Part("baseline", "Baseline"),
        _suites(results, archive),
        Part("limits", "Selection and limits", facts=tuple(_known(_limits(results.run.coverage)))),
        _rules(results),
        _differences(differences),
    )
    return tuple(part for part in parts if not part.empty)


def commit_of(run: Run, characters: int = 12) -> str:
    """Return the short form of a run's commit, and whether files differed from it."""
    return f"{short_commit(run.commit)[:characters]}{' and changes' if run.commit and run.uncommitted else ''}"


def _run(results: Results) -> Iterator[tuple[str, str]]:
    run = results.run
    yield "Run", one_line(run.id, _LONGEST)
    yield "Commit", commit_of(run)
    yield "Ref", _branch(run.ref)
    yield "To merge into", _branch(run.base_ref)
    yield "Repository", one_line(run.repository or "", _LONGEST)
    yield "Started", moment(run.started_at)
    yield "Duration", words.duration(run.duration_s)
    yield "Complete", "" if run.complete else "no, it was interrupted"
    yield "Seed", "" if run.seed is None else str(run.seed)
    yield "Shard", f"{run.shard.index} of {run.shard.count}" if run.shard else ""
    yield "Merged from", count(len(run.merged), "part") if run.merged else ""
    yield "Version", one_line(results.tool.version, _LONGEST)
    plugins = (f"{plugin.name} {plugin.version}" for plugin in results.tool.plugins)
    yield "Plugins", ", ".join(one_line(plugin, _LONGEST) for plugin in plugins)


def _baseline(base: Base) -> Part:
    facts = (
        ("Commit", short_commit(base.commit)),
        ("Ref", _branch(base.ref)),
        ("Run", one_line(base.run_id, _LONGEST)),
        ("Made", moment(base.created_at)),
        ("Age", base.age.removesuffix(" old")),
        ("Distance", "" if base.distance is None else f"{count(base.distance, 'commit')} before the base commit"),
        ("Includes", ", ".join(filter(None, map(short_commit, base.between)))),
        ("Beside the change", short_commit(base.beside)),
    )
    note = (base.note,) if base.word != "proven" else ()
    return Part("baseline", "Baseline", paragraphs=note, facts=tuple(_known(facts)))


def _suites(results: Results, archive: Archive) -> Part:
    rows = ((suite.name, suite.path, suite.format, f"{archive.counts(suite).total():,}") for suite in results.suites)
    return Part("suites", "Suites", tables=(table("", ("Suite", "File", "Format", "#Cases"), rows, _MOST_ROWS),))


def _limits(coverage: Coverage | None) -> Iterator[tuple[str, str]]:
    if coverage is None:
        return
    yield "Cases", coverage.selection_note
    yield "Finished", coverage.counts_note
    yield "Iterations", "" if coverage.iterations is None else f"{coverage.iterations:,}"
    yield "Model calls", "" if coverage.max_llm_calls is None else f"at most {coverage.max_llm_calls:,}"
    yield "Cost", "" if coverage.max_cost_usd is None else f"at most {words.money(coverage.max_cost_usd)}"
    yield "Time", "" if coverage.time_limit_s is None else f"at most {words.duration(coverage.time_limit_s)}"
    yield "Ended by", coverage.ended_by or ""


def _rules(results: Results) -> Part:
    rules = results.gate.rules if results.gate else None
    if rules is None:
        return Part("rules", "Rules of the gate")
    facts = (
        ("Fails on", ", ".join(rules.fail_on)),
        # Any error counts if errors fail the gate.
        (
            "Cases that may end in an error",
            "none" if "errors" in rules.fail_on else words.percent(rules.max_error_rate),
        ),
        ("Not counted", ", ".join(one_line(case, _LONGEST) for case in rules.quarantine[:_MOST_ROWS])),
    )
    return Part("rules", "Rules of the gate", facts=tuple(_known(facts)))


def _differences(differences: Iterable[IntegrityRow]) -> Part:
    rows = ((row.what, row.before, row.after, row.effect) for row in differences)
    shown = table("", ("What", "Base commit", "This change", "What decides"), rows, _MOST_ROWS)
    title = "Suites and rules that differ from the base commit"
    return Part("differences", title, tables=(shown,) if shown.rows else ())


def _known(facts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((label, value) for label, value in facts if value)


def _branch(ref: str | None) -> str:
    return one_line((ref or "").removeprefix("refs/heads/"), _LONGEST)


_EFFECTS = {
    "unproven": "unproven: it cannot be compared",
    "base": "the base's version decides until this is merged",
    "paired": "compared under its new name",
    "absolute": "decided by its own result",
    "listed": "listed only",
}
_WORKFLOW = "cannot be enforced from inside the run; review it"
_RULES = "unproven: the change could choose its own"
_AGENT = "the agent of the change is evaluated"
_NOT_SELECTED = "this run selects neither name"
_KINDS = {
    "metric": "metric",
    "agent": "agent:",
    "setting": "setting",
    "workflow": "workflow",
    "rules": "suites and rules of the base commit",
}
_OF_CASES = {"removed": "removed ", "renamed": "renamed ", "edited": "edited ", "new": "new ", "case": ""}
_NAMES = 2
_LOOSENED, _CHANGED = "🔽", "✏️"
_ICONS = {"removed": "➖", "new": "➕", "workflow": "⚠️", "rules": "⚠️"}


@dataclass(frozen=True)
class IntegrityRow:
    """One difference.

    Attributes:
        strong: whether readers must look at it: nothing else will.
        matters: whether somebody must look: it is unproven, loosens the rules, or cannot be enforced.
    """

    icon: str
    what: str
    before: str
    after: str
    effect: str
    strong: bool = False
    matters: bool = False

    def __str__(self) -> str:
        change = "" if self.before == self.after else f": {self.before} → {self.after}"
        return f"{self.what}{change} ({self.effect})"


def integrity_rows(run: Run) -> Iterator[IntegrityRow]:
    """Yield the differences, first those that nothing in the run can check or that make it unproven."""
    ordered = sorted(
        run.integrity, key=lambda item: (item.kind != "workflow", item.effect != "unproven", not item.loosens)
    )
    groups: dict[object, list[Difference]] = {}
    for place, item in enumerate(ordered):
        groups.setdefault(_alike(item) if item.case and item.kind in _OF_CASES else place, []).append(item)
    paths = {item.case.partition("::")[0] if "::" in item.case else "" for item in ordered if item.case}
    for item, *others in groups.values():
        yield IntegrityRow(
            icon=_LOOSENED if item.loosens else _ICONS.get(item.kind, _CHANGED),
            what=_what((item, *others), has_one_suite=len(paths) == 1),
            before=NOTHING if item.before is None else item.before,
            after=NOTHING if item.after is None else item.after,
            effect=_effect(item),
            strong=item.kind == "workflow",
            matters=item.accepted_by is None
            and (item.loosens or item.effect == "unproven" or item.kind == "workflow"),
        )


def _alike(item: Difference) -> object:
    return item.kind, item.metric, item.setting, item.before, item.after, item.loosens, _effect(item)


def _what(items: Sequence[Difference], *, has_one_suite: bool) -> str:
    item = items[0]
    names = [name for each in items if (name := _name(each.case or "", has_one_suite=has_one_suite))]
    listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else "")
    of = listed or (count(item.cases, "case") if item.cases else "")
    asked = f"{item.setting} of {item.metric}" if item.setting and item.metric else item.setting or item.metric or ""
    if item.kind not in _OF_CASES:
        start = "" if item.setting and item.metric else f"{_KINDS[item.kind]} "
        return f"{start}{asked}{f' in {of}' if of and asked else of}".strip()
    start = _OF_CASES[item.kind]
    if not names:
        number, _, noun = of.partition(" ")
        return f"{number} {start}{noun}".strip() if of else f"{start}case"
    cases = f"{start}case {listed}" if len(names) == 1 else f"{len(names):,} {start}cases: {listed}"
    return f"{asked} of {cases}" if asked else cases


def _name(id_: str, *, has_one_suite: bool) -> str:
    return id_.partition("::")[2] or id_ if has_one_suite else id_


def _effect(item: Difference) -> str:
    if item.accepted_by is not None:
        by = f" by {item.accepted_by.author}" if item.accepted_by.author else ""
        return f"accepted{by}: {item.accepted_by.reason}"
    own = {"workflow": _WORKFLOW, "agent": _AGENT, "renamed": _NOT_SELECTED}.get(item.kind)
    text = own if own is not None and item.effect == "listed" else _EFFECTS[item.effect]
    if item.kind == "rules" and item.effect == "unproven":
        text = _RULES
    return f"looser; {text}" if item.loosens else text
