"""How a change differs from the base commit by whose suites and rules it was judged, as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.report.view.view import NOTHING, count
from agenteval.results.integrity import Difference
from agenteval.results.model import Run

_EFFECTS = {
    "unproven": "unproven: it cannot be compared",
    "base": "the base's version decides; takes effect once merged",
    "paired": "compared under its new name",
    "absolute": "decided by its own result",
    "listed": "listed only",
}
_WORKFLOW = "cannot be enforced from inside the run; review it"
_RULES = "unproven: the change could choose its own"
_AGENT = "the agent of the change is evaluated"
_NOT_SELECTED = "this run selects neither name"
_KINDS = {
    "removed": "removed case",
    "renamed": "renamed case",
    "edited": "edited case",
    "new": "new case",
    "case": "case",
    "metric": "metric",
    "agent": "agent:",
    "setting": "setting",
    "workflow": "workflow",
    "rules": "suites and rules of the base commit",
}
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
    for item in ordered:
        yield IntegrityRow(
            icon=_LOOSENED if item.loosens else _ICONS.get(item.kind, _CHANGED),
            what=_what(item),
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


def _what(item: Difference) -> str:
    of = item.case or (count(item.cases, "case") if item.cases else "")
    parts = [item.metric or "", item.setting or "", f"of {of}" if of and (item.metric or item.setting) else of]
    return f"{_KINDS[item.kind]} {' '.join(part for part in parts if part)}".strip()


def _effect(item: Difference) -> str:
    if item.accepted_by is not None:
        by = f" by {item.accepted_by.author}" if item.accepted_by.author else ""
        return f"accepted{by}: {item.accepted_by.reason}"
    own = {"workflow": _WORKFLOW, "agent": _AGENT, "renamed": _NOT_SELECTED}.get(item.kind)
    text = own if own is not None and item.effect == "listed" else _EFFECTS[item.effect]
    if item.kind == "rules" and item.effect == "unproven":
        text = _RULES
    return f"will loosen; {text}" if item.loosens else text
