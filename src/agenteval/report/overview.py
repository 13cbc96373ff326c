"""A run in short: badge, annotations, its row in the comment that several jobs share, and notes without a result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from agenteval.core import escape
from agenteval.core.errors import Problem
from agenteval.core.escape import address, markdown_inline, markdown_lines
from agenteval.core.mistakes import counted, mistakes
from agenteval.core.records import dataclass
from agenteval.core.secrets import mask
from agenteval.report import words
from agenteval.report.cases import KINDS, Kind
from agenteval.report.causes import Cause, largest_cause
from agenteval.report.facts import Report
from agenteval.report.parts import ReportFile
from agenteval.report.stories import Story
from agenteval.report.words import money
from agenteval.results.case import TurnResult
from agenteval.results.comparison import ComparedResource
from agenteval.results.history import why_partial

_MOST = 50
_LONGEST = 600


def render_problems(problems: Iterable[Problem], name: str = "") -> str:
    """Return Markdown for summary and comment: the mistakes in the order in which they were found."""
    found = mistakes(problems)
    lines = [f"{_heading(name)}: {counted(found)}, nothing was evaluated", ""]
    lines += [
        f"- {markdown_inline(mask(str(mistake)), _LONGEST)} ([help]({mistake.page}))" for mistake in found[:_MOST]
    ]
    if len(found) > _MOST:
        lines.append(f"- … and {len(found) - _MOST} more in the log")
    return "\n".join(lines) + "\n"


def render_running(commit: str, url: str) -> str:
    """Return Markdown for a run in progress."""
    return f"⏳ **The evaluation of `{_short(commit)}` is running** ([log]({url}))."


def running_note(commit: str, url: str) -> str:
    """Return the line above the previous result while a new run is in progress."""
    return f"{render_running(commit, url)} Below is the result of the previous run."


def render_unfinished(commit: str, url: str, name: str = "") -> str:
    """Return Markdown for a run that ended without a report."""
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` did not finish\n\n"
        f"The run ended before it could report: it was cancelled, out of time, or out of memory. "
        f"See the [log]({url}).\n"
    )


def render_nothing_left(commit: str, url: str, reason: str, name: str = "") -> str:
    """Return Markdown for a fork's run without usable results."""
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` left no results\n\n{reason}. See the [log]({url}).\n"
    )


def render_unpublished(problems: Sequence[str]) -> str:
    """Return Markdown for the job summary: why the comment or the check run could not be written."""
    lines = ["#### ⚠️ Not everything was published on GitHub", ""]
    lines += [f"- {markdown_lines(mask(problem), _LONGEST)}" for problem in problems[:_MOST]]
    return "\n".join(lines) + "\n"


def _heading(name: str) -> str:
    return f"### 💥 agenteval · {markdown_inline(name)}" if name else "### 💥 agenteval"


def _short(commit: str) -> str:
    return "".join(filter(str.isalnum, commit))[:12]


_LONGEST_JOB = 100
_SEEN = 0.005
_BOLD = 0.2


def overview_row(report: Report, job: str) -> str:
    """Return the cells of a row: icon, agent, cases that pass, what broke, cost and time per answer, and a link."""
    resources = {item.name: item for item in (report.base.resources if report.base else ())}
    cells = (
        report.heading.icon,
        f"<b>{markdown_inline(report.heading.name)}</b>{_small(job)}",
        f"{report.counts.passed:,} of {report.counts.cases:,}",
        _broke(report),
        _resource(resources.get("cost_usd")),
        _resource(resources.get("latency_ms")),
        f'<a href="{address(f"{report.about.link}#artifacts")}">report</a>' if report.about.link else "",
    )
    return f"| {' | '.join(cells)} |"


def _small(text: str) -> str:
    return f" <sub>{markdown_inline(text, _LONGEST_JOB)}</sub>" if text else ""


def _broke(report: Report) -> str:
    for kinds in (("broke", "failed"), ("fell",), ("error",), ("suspicious",)):
        found = [cause for cause in report.causes if cause.kind in kinds]
        if found:
            return _told(kinds[0], found)
    if report.rules_matter:
        return "rules changed"
    known = sum(len(cause.cases) for cause in report.causes if cause.kind == "known")
    return f"–{_small(f'{known:,} known') if known else ''}"


def _told(kind: str, causes: Sequence[Cause]) -> str:
    amount, largest = sum(len(cause.cases) for cause in causes), largest_cause(causes)
    if kind == "fell":
        more = f" and {len(causes) - 1:,} more" if len(causes) > 1 else ""
        return markdown_inline(f"{causes[0].names[0]}: {causes[0].before} → {causes[0].now}{more}")
    words = {"error": " could not be run", "suspicious": " may be worse"}.get(kind, "")
    same = f", {len(largest.cases):,} for the same reason" if largest is not None and not words else ""
    return f"<b>{amount:,}</b>{words}{same}"


def _resource(resource: ComparedResource | None) -> str:
    if resource is None:
        return ""
    value = money(resource.current) if resource.name == "cost_usd" else f"{resource.current / 1000:,.1f} s"
    change = resource.change
    if change is None or abs(change) < _SEEN:
        return markdown_inline(value)
    text = words.change(change)
    return f"{markdown_inline(value)} {f'<b>{text}</b>' if abs(change) > _BOLD else text}"


#: Colours of a passed run, by the least share of all cases that were checked and passed.
_COLOURS = ((1.0, "brightgreen"), (0.8, "green"), (0.5, "yellow"), (0.0, "orange"))


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield ``badge.json``: the pass rate, or how many of all cases passed, in the colour of the verdict."""
    message, colour = _result(report)
    text = ", ".join([message, *_of_how_many(report)])
    badge = {"schemaVersion": 1, "label": "agenteval", "message": text, "color": colour}
    yield ReportFile("badge.json", f"{json.dumps(badge, indent=1)}\n")


def _result(report: Report) -> tuple[str, str]:
    counts, shard = report.counts, report.run.shard
    if not report.run.complete:
        return "interrupted", "lightgrey"
    if shard is not None:
        return f"shard {shard.index} of {shard.count}", "lightgrey"
    if counts.cases == counts.skipped:
        return "nothing checked", "lightgrey"
    if report.verdict == "unproven":
        return "unproven", "lightgrey"
    # Those that a metric or the comparison of means decided about.
    decided, cases = counts.passed - report.about.undecided, counts.cases
    all_are = decided + counts.failed == cases
    passed = f"{words.percent(decided / cases)} passed" if all_are else f"{decided:,} of {cases:,} passed"
    passed += f", {report.about.undecided:,} unchecked" if report.about.undecided else ""
    if why_partial(report.run):
        return passed, "lightgrey"
    if not report.passed:
        return passed, "red"
    return passed, next(colour for least, colour in _COLOURS if decided / cases >= least)


def _of_how_many(report: Report) -> Iterator[str]:
    covered, judging = report.run.coverage, report.summary.judging
    if covered is not None and covered.counts_note:
        yield covered.counts_note
    if judging is not None:
        yield f"judged {judging.judged:,} of {judging.cases:,} cases"


#: GitHub accepts 255 characters.
MOST_TITLE = 255
#: A check run accepts 64 KB, a workflow command 4,096 characters. This limit fits into both.
MOST_MESSAGE = 2_000

Level = Literal["failure", "warning", "notice"]

_MOST_ANNOTATED = 1_000
_LINES = 2**31 - 1
# A headline, five facts and an answer are below MOST_MESSAGE together.
_HEADLINE = 250
_FACT = 250
_FACTS = 5
_ANSWER = 300
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
#: Kinds of cases that are annotated. What is not held against the change is only a notice.
LEVELS: Mapping[Kind, Level] = {
    "broke": "failure",
    "failed": "failure",
    "error": "failure",
    "fell": "warning",
    "suspicious": "warning",
    "cleared": "notice",
    "known": "notice",
    "quarantined": "notice",
    "accepted": "notice",
    "new": "notice",
}


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file.

    Attributes:
        path: relative to the root of the repository, with forward slashes.
        line: 1-based.
        level: ``warning`` for what is not proven, ``notice`` for what is not held against the change.
        title: plain text, one line; may be empty.
    """

    path: str
    line: int
    level: Level
    title: str
    message: str


def annotate(report: Report, *, most: int = _MOST_ANNOTATED) -> tuple[Annotation, ...]:
    """Return one annotation for each cause in a file of the repository, at the line of its first case."""
    found = [cause for cause in report.causes if cause.kind in LEVELS and cause.cases]
    placed = [cause for cause in found if _is_in_repository(cause.cases[0].path)]
    stories = [(cause, report.stories.get(cause.cases[0].id)) for cause in placed[:most]]
    return tuple(_annotation(cause, story, report.base_name) for cause, story in stories if story is not None)


def _annotation(cause: Cause, story: Story, base: str) -> Annotation:
    line = story.found.line or 1
    others = f" and {story.others:,} like it" if story.others else ""
    told = _facts(story) if cause.kind != "new" else ()
    return Annotation(
        path=story.found.path,
        line=line if 1 <= line <= _LINES else 1,
        level=LEVELS[cause.kind],
        title=f"{_plain(story.name, MOST_TITLE - len(others))}{others}",
        message="\n".join([_plain(_headline(cause, base), _HEADLINE), *told, *_answer(story, cause.kind)]),
    )


def _headline(cause: Cause, base: str) -> str:
    kind = KINDS[cause.kind].words
    # The numbers of a mean that fell are its means.
    before, now = ("", "") if cause.metric is not None else (cause.before, cause.now)
    passed = [f"{before} passed on {base}"] if before else []
    now, each, _ = now.partition(" each")
    passed += [f"{now}{each} here" if passed else f"{now} passed{each}"] if now else []
    alike = ["all give the same answer"] if cause.by == "answer" else []
    said = ", ".join([*passed, *alike])
    return f"{kind[0].upper()}{kind[1:]}{f': {said}' if said else ''}"


def _facts(story: Story) -> Iterator[str]:
    # If a regression has no failed score, its scores dropped.
    found = words.facts(story.case) or (tuple(words.got_worse(story.compared)) if story.compared else ())
    for fact in found[:_FACTS]:
        yield _plain(str(fact), _FACT)
    if len(found) > _FACTS:
        yield f"… and {len(found) - _FACTS:,} more"


def _answer(story: Story, kind: Kind) -> Iterator[str]:
    iteration = story.case.telling_iteration
    turns = iteration.turns if iteration and kind != "new" else []
    shown = next(filter(_is_bad, turns), turns[-1] if turns else None)
    if shown is not None and (answer := _plain(shown.response or "", _ANSWER)):
        yield f"Answer: {answer}" if len(turns) == 1 else f"Answer in turn {shown.index + 1}: {answer}"


def _is_bad(turn: TurnResult) -> bool:
    return turn.error is not None or any(score.passed is False or score.status == "error" for score in turn.scores)


def _plain(text: str, limit: int) -> str:
    """Return one line of at most ``limit`` characters that GitHub accepts and no runner executes as a command."""
    known = _BEYOND.sub(lambda found: f"[U+{ord(found[0]):X}]", escape.one_line(text, limit))
    # This step is last, because the added brackets must not complete a command in untrusted text.
    line = escape.terminal(known)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _is_in_repository(path: str) -> bool:
    pure = PurePosixPath(path)
    is_inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
    return is_inside and escape.terminal(path) == path and not _BEYOND.search(path)
