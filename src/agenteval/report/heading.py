"""What a run means for a merge: a heading with the name of the suite, and the sentences below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass
from agenteval.gate.failures import Counts, compared
from agenteval.gate.findings import run_notes
from agenteval.report.cases import Kind
from agenteval.report.causes import Cause, largest_cause, one_cause_is_likely
from agenteval.report.metrics import base_name
from agenteval.report.words import count
from agenteval.results.comparison import Comparison
from agenteval.results.history import nothing_decided
from agenteval.results.model import Difference, Results
from agenteval.results.verdict import Gate

#: Maximum number of characters of a heading, with its icon and name.
LONGEST_HEADING = 100
_LONGEST_NAME = 40
_MOST_REASONS = 2
_MOST_GOALS = 5
# Characters of the id of a commit.
_SHORT = 7
# The exit status if something outside of the change is missing or broke.
_BROKEN = 3
_WORSE: tuple[Kind, ...] = ("broke", "failed")
# Reasons that the heading, the table and the sentence tell already.
_COUNTED = re.compile(
    r"[\d,]+ (of [\d,]+ )?cases? (passed|failed|fails?|broke|could not be run|that did not fail in the baseline)\b"
    r"|.* is allowed$"
)


# Where a heading may end, besides the details in parentheses at its end.
_END = re.compile(r"[:;] | — ")


@dataclass(frozen=True)
class Heading:
    """The heading of a report.

    Attributes:
        icon: ❌ blocked, ⚠️ passes but needs eyes, 🔌 not judged, ✅ passed.
        text: after the name: ``3 of 114 cases broke — 2 for the same reason``.
        whole: the text where there is room for all of it.
        consequence: one or two sentences: blocked or not, by what else, and what it costs.
        goals: the goals of the suites, each with the names of its suites; without a name if all suites have it.
    """

    icon: str
    name: str
    text: str
    consequence: str
    goals: tuple[tuple[str, str], ...] = ()
    whole: str = ""

    @property
    def title(self) -> str:
        """The heading without its icon, for places that show one line of plain text."""
        return f"{self.name}: {self.text}"


def heading_of(results: Results, gate: Gate, causes: Sequence[Cause], counts: Counts) -> Heading:
    """Return the heading of a run."""
    name = suite_name(results)
    facts = _Sentences(results, gate, causes, counts, LONGEST_HEADING - len(name) - len("⚠️ : …"))
    *others, last = facts.sentences()
    ended = [text if text.endswith(".") else f"{text}." for text in others]
    return Heading(facts.icon, name, facts.heading, " ".join([*ended, last]), _goals(results), facts.text)


def _goals(results: Results) -> tuple[tuple[str, str], ...]:
    named: dict[str, list[str]] = {}
    for suite in results.suites:
        if suite.goal and suite.goal.strip():
            named.setdefault(suite.goal.strip(), []).append(suite.name)
    return tuple(
        ("" if len(names) == len(results.suites) else ", ".join(names), text)
        for text, names in list(named.items())[:_MOST_GOALS]
    )


def suite_name(results: Results) -> str:
    """Return the names of the suites, as far as they fit into a heading."""
    names = list(dict.fromkeys(suite.name for suite in results.suites if suite.name.strip()))
    if not names:
        return results.tool.name
    text = names[0] if len(names) == 1 else f"{names[0]} and {count(len(names) - 1, 'more suite')}"
    return one_line(text, _LONGEST_NAME)


def headline(results: Results, gate: Gate) -> str:
    """Return the verdict in a few words, after ``interrupted`` if the run was."""
    return gate.headline if results.run.complete else f"interrupted: {gate.headline}"


@dataclass(frozen=True)
class _Sentences:
    results: Results
    gate: Gate
    causes: Sequence[Cause]
    counts: Counts
    room: int

    def amount(self, *kinds: Kind) -> int:
        return sum(len(cause.cases) for cause in self.causes if cause.kind in kinds)

    @property
    def comparison(self) -> Comparison | None:
        return self.results.comparison

    @property
    def base(self) -> str:
        return base_name(self.comparison)

    @property
    def is_outside(self) -> bool:
        """Whether every case that could not be run failed outside of the change: agent or judge were not there.

        Where passes beside the base prove that answers are lost, it is the change.
        """
        if self._is_of_change:
            return False
        errors = [case for _, case in self.results.cases() if case.status == "error"]
        turns = [turn for case in errors for turn in case.turns]
        agent = [turn for turn in turns if turn.error]
        return bool(errors) and all(turn.unavailable or turn.not_asked for turn in agent)

    @property
    def _is_of_change(self) -> bool:
        return self.comparison is not None and self.comparison.state == "proven"

    @property
    def loosens(self) -> bool:
        return any(map(_loosens, self.results.run.integrity))

    @property
    def icon(self) -> str:
        match self.gate.verdict:
            case "error" if not self._is_of_change:
                return "🔌"
            case "failed" | "error":
                return "❌"
            case "unproven":
                is_outside = self._lacks_something_outside and not self._doubt
                return ("🔌" if is_outside else "❌") if self._fails_job else "⚠️"
        is_suspicious = self.comparison is not None and self.comparison.state == "suspicious"
        is_doubtful = self.loosens or is_suspicious or nothing_decided(self.results)
        return "⚠️" if is_doubtful or self.amount("broke", "failed", "fell") else "✅"

    @property
    def _fails_job(self) -> bool:
        return self.gate.exit_status != 0

    @property
    def _lacks_something_outside(self) -> bool:
        return self.results.gate is not None and self.results.gate.exit_status == _BROKEN

    @property
    def heading(self) -> str:
        """The text, or as many of its parts as the heading has room for."""
        text = one_line(self.text)
        details = text.find(" (") if text.endswith(")") else 0
        ends = [details, *(found.start() for found in _END.finditer(text))]
        heads = (text[:end] for end in ends if 0 < end <= self.room)
        return text if len(text) <= self.room else max(heads, key=len, default=one_line(text, self.room))

    @property
    def text(self) -> str:
        # A part of a run decides nothing, whatever the whole run had found.
        if not self.results.run.complete or self.results.run.shard is not None:
            return headline(self.results, self.gate)
        if self.gate.verdict == "error" and not self._is_of_change:
            return self._not_run
        if self.gate.verdict != "unproven" and (worse := self._worse):
            return f"{worse}{self._rules}"
        if self.gate.verdict == "passed":
            return f"{self._passed}{self._rules}"
        if self.gate.verdict == "unproven" and (doubt := self._doubt):
            return doubt
        # What counts and was not checked, or a condition of the whole suite. What to do stands below.
        return self.gate.headline.partition("; ")[0]

    @property
    def _rules(self) -> str:
        changed = sum(_loosens(item) for item in self.results.run.integrity)
        return f" — rules changed ({changed:,}), judged by {self.base}'s" if changed else ""

    @property
    def _doubt(self) -> str:
        points = self.comparison.unproven if self.comparison else []
        return next((point.text for point in points if point.what == "proof"), "")

    @property
    def _not_run(self) -> str:
        errors, cases = max(self.amount("error"), self.counts.errors), self.counts.cases
        kinds = [cause for cause in self.causes if cause.kind == "error"]
        why = "the agent was not reachable" if self.is_outside and all(_of_agent(cause) for cause in kinds) else ""
        if errors == cases > 1 and len(kinds) == 1:
            why = why or "all for the same reason"
        return f"{self._of(errors)} could not be run{f' — {why}' if why else ''}" if errors else self.gate.headline

    @property
    def _worse(self) -> str:
        for kind in _WORSE:
            causes = [cause for cause in self.causes if cause.kind == kind]
            if causes:
                amount = self.amount(kind)
                verb = "broke" if kind == "broke" else "fails" if amount == 1 else "fail"
                return f"{self._of(amount)} {verb}{_shared(causes)}"
        fallen = [cause for cause in self.causes if cause.kind == "fell"]
        if fallen:
            more = f", and {count(len(fallen) - 1, 'more metric')}" if len(fallen) > 1 else ""
            if fallen[0].unit == "Score" and 2 * self.counts.failed >= self.counts.cases:
                fell = fallen[0].words.rpartition(" over ")[0]
                return f"{self._of(self.counts.failed)} fail ({fell}{more})"
            return f"{fallen[0].words}{more}"
        return ""

    def _of(self, amount: int) -> str:
        total = self.counts.cases
        if self.comparison is not None and self.amount("broke"):
            total = compared(self.comparison)
        return f"{amount:,} of {count(max(total, amount), 'case')}"

    @property
    def _passed(self) -> str:
        summary = self.results.summary
        if not summary.cases:
            return self.gate.headline
        if self.comparison is None:
            return f"{_passed(self.counts)} — nothing to compare with yet"
        if self.comparison.state == "suspicious":
            return self.comparison.headline
        if accepted := self.amount("accepted"):
            verb = "does" if accepted == 1 else "do"
            return f"{count(accepted, 'case')} {verb} not pass, which was accepted — nothing else broke or fell"
        return _passed(self.counts)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences below the heading. Numbers without a sentence after them have no full stop."""
        more = tuple(self._more_sentences())
        yield f"{self._decision}." if more and self._decision == self._score else self._decision
        yield from more

    def _more_sentences(self) -> Iterator[str]:
        if self._fails_job and not self.is_outside and (branch := self.results.run.base_ref):
            yield f"It blocks merging once the rules of {branch} require it (Settings → Rules)."
        if repeats := self._repeats:
            yield repeats
        if self.gate.verdict in {"failed", "error"} and one_cause_is_likely(self.causes):
            yield "They probably have one cause: a model, key or service that answers differently."
        yield from self._also
        if self.gate.verdict != "passed" or self._decision == self._score:
            untold = [note for note in run_notes(self.results) if note not in self._decision]
            yield from (f"{note[:1].upper()}{note[1:]}." for note in untold)

    @property
    def _decision(self) -> str:
        errors = self.amount("error")
        match self.gate.verdict:
            case "error" if self.is_outside:
                return "This says nothing about the changes in this pull request."
            case "error":
                return f"The check fails: {self.gate.headline}." if self._fails_job else f"{self.gate.headline}."
            case "failed":
                also = (
                    f", also because {count(errors, 'case')} could not be run"
                    if errors and self._errors_count
                    else ""
                )
                return f"The check fails{also}."
            case "unproven" if self._fails_job:
                return f"The check fails until this is {'proven, cleared or accepted' if self._doubt else 'settled'}."
            case "unproven":
                return "The check passes."
        if self.icon == "✅" and self._score:
            return self._score
        why = "" if self.gate.headline == self.gate.verdict else f": {self.gate.headline}"
        return f"The check passes{why}."

    @property
    def _repeats(self) -> str:
        """Where the verdict was shown first, if this run called nothing: otherwise nobody would know why."""
        memory, commit = self.results.memory, self.results.run.commit
        if memory is None or not memory.repeats:
            return ""
        where = f"already shown in attempt {memory.attempt}"
        if where in self._decision:
            return ""
        where += f" for commit {commit[:_SHORT]}" if commit else ""
        advice = "nothing has changed since" if self.gate.verdict == "passed" else "push a change or accept it"
        return f"This verdict was {where}: {advice}."

    @property
    def _errors_count(self) -> bool:
        rules = self.results.gate.rules if self.results.gate else None
        return rules is None or "errors" in rules.fail_on

    @property
    def _score(self) -> str:
        parts = [f"{count(self.counts.errors, 'case')} could not be run"] if self.counts.errors else []
        parts += [f"{count(self.counts.skipped, 'case')} skipped"] if self.counts.skipped else []
        return " · ".join(parts)

    @property
    def _also(self) -> Iterator[str]:
        if self.gate.verdict == "error" and self.is_outside:
            return
        comparison = self.comparison
        told = {self.gate.headline, *(comparison.sentences if comparison else ())}
        if comparison is not None:
            told.add(comparison.headline)
        if self.gate.verdict == "unproven":
            # The sentence about certainty tells them.
            told |= {text for point in (comparison.unproven if comparison else ()) for text in point.details}
        if self.heading != one_line(self.text):
            # The heading had no room for all of it.
            told.discard(self.text)
        rest = [text for text in self.gate.reasons if text not in told and not _COUNTED.match(text)]
        if rest:
            more = f"; and {count(len(rest) - _MOST_REASONS, 'more reason')}" if len(rest) > _MOST_REASONS else ""
            yield f"Also: {'; '.join(one_line(text, 200) for text in rest[:_MOST_REASONS])}{more}."


def _loosens(item: Difference) -> bool:
    return (item.loosens or item.kind == "workflow") and item.accepted_by is None


def _passed(counts: Counts) -> str:
    verb = "passes" if counts.passed == 1 else "pass"
    return f"{counts.passed:,} of {count(counts.cases, 'case')} {verb}"


def _of_agent(cause: Cause) -> bool:
    return all(found.wrong is not None and found.wrong.metric == "agent" for found in cause.cases)


def _shared(causes: Sequence[Cause]) -> str:
    largest = largest_cause(causes)
    if largest is None:
        return ""
    who = "all" if len(causes) == 1 else f"{len(largest.cases):,}"
    return f" — {who} give the same answer now" if largest.by == "answer" else f" — {who} for the same reason"
