"""How a change differs from the base commit by whose suites and rules it was judged, as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agenteval.report.view.view import NOTHING, count
from agenteval.results.integrity import Difference
from agenteval.results.model import Run

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


@dataclass(frozen=True, slots=True)
class IntegrityRow:
    """One difference.

    Attributes:
        icon: of its kind, for Markdown.
        what: what differs.
        before: the value in the base commit.
        after: the value in the change.
        effect: what decides.
        strong: whether readers must look at it: nothing else will.
    """

    icon: str
    what: str
    before: str
    after: str
    effect: str
    strong: bool = False

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
        )


def rules_matter(run: Run) -> bool:
    """Return whether somebody must look: a difference is unproven, loosens the rules, or cannot be enforced."""
    return any(
        item.accepted_by is None and (item.loosens or item.effect == "unproven" or item.kind == "workflow")
        for item in run.integrity
    )


def _alike(item: Difference) -> object:
    """Return what the differences of several cases have in common if one row tells them."""
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
    """Return how to call a case: its name alone if all are in one suite."""
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
