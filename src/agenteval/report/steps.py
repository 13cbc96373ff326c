"""What a reader can do next: the commands that repeat or accept cases, and what usually helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import product

from agenteval.core import escape
from agenteval.core.records import dataclass
from agenteval.core.secrets import mask
from agenteval.report.causes import CaseChange, Cause, one_cause_is_likely
from agenteval.results.model import DEFAULT_ARTIFACT, Results

# Where a run writes; and the folders of the commands. Nothing writes where a later command reads.
_FOLDER, _AGAIN, _OF_RUN, _OF_BASE = "agenteval-report", "agenteval-again", "agenteval-run", "agenteval-base"
_MOST_SUITES = 3
_MOST_NAMES = 3
_LONGEST_ARGUMENT = 100
_REPEATED = frozenset({"broke", "failed", "error", "fell", "suspicious"})
_ACCEPTED = frozenset({"broke", "removed", "fell", "suspicious"})

_NO_AGENT = (
    "Is the agent started before this step, and ready? Wait for it in an earlier step.",
    "In a container, a service of the job has its name as its host: http://agent:8000, not 127.0.0.1.",
)
_NO_JUDGE = ("Does the judge answer? Check the `endpoint` of its model, and that this job can reach it.",)
_HELPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"connect|refused|(?<!limit was )reach|resolve|name or service|listens", _NO_AGENT),
    (
        r"\b40[13]\b|unauthori[sz]ed|forbidden|api.?key|credential|permission",
        ("Is the secret set, and passed in env of the step? Runs from forks get no secrets.",),
    ),
    (
        r"\b429\b|rate.?limit|quota|too many requests",
        ("Lower concurrency, or raise the quota of the key.",),
    ),
    (
        r"\b50[0234]\b|overload|unavailable|timed? ?out|no answer within",
        ("The service was overloaded or down: run it again later, or raise timeout.",),
    ),
)


@dataclass(frozen=True)
class NextSteps:
    """The next steps of a run."""

    commands: tuple[str, ...] = ()
    accept: str = ""
    helps: tuple[str, ...] = ()
    open_cases: int = 0
    needs_all: bool = False
    can_prove: bool = False


def next_steps(results: Results, causes: Sequence[Cause], control: str = "") -> NextSteps:
    """Return the next steps of a run; without commands if nothing needs attention."""
    summary = results.summary
    left_out = sum(case.is_open for _, case in results.cases() if case.status == "skipped") if summary.skipped else 0
    return NextSteps(
        commands=tuple(_commands(results, causes, summary.failed + summary.errors + left_out, control)),
        accept=_accept(results, causes),
        helps=_helps(causes),
        open_cases=summary.failed + summary.errors + left_out,
        needs_all=_only_means_fell(results, causes),
        can_prove=results.can_be_proven,
    )


def command_of(results: Results, found: CaseChange, control: str) -> str:
    """Return the command that runs one case; empty if it is gone, was recorded, or has a name that no shell takes."""
    words = (found.path, found.id)
    if _is_recorded(results) or found.kind == "removed" or not all(map(_is_plain, words)) or not found.id:
        return ""
    command = f"agenteval run {shlex.quote(found.path)} --case {shlex.quote(found.id)}"
    return f"{command} {baseline_option(results, control)}".rstrip()


def download_of(results: Results) -> str:
    """Return the command that fetches the baseline; empty without one, or if it is a file."""
    baseline = results.comparison.baseline if results.comparison else None
    run = _number(baseline.workflow_run_id) if baseline is not None and not baseline.file else ""
    return _download(run, baseline.workflow_artifact, _OF_BASE) if baseline is not None and run else ""


def baseline_option(results: Results, control: str) -> str:
    """Return the options that name the baseline and a control; empty without a baseline that a shell takes."""
    named = results.comparison.baseline.file if results.comparison else ""
    file = named or (_OF_BASE if download_of(results) else "")
    if not file or not _is_plain(file):
        return ""
    control = mask(control)
    beside = f" --control {shlex.quote(control)}" if control and _is_plain(control) else ""
    return f"--baseline {shlex.quote(file)}{beside}"


def _only_means_fell(results: Results, causes: Sequence[Cause]) -> bool:
    fell = [found.id for cause in causes if cause.kind == "fell" for found in cause.cases]
    failed = {case.id for case in results.failed()}
    kinds = {cause.kind for cause in causes}
    return (
        "fell" in kinds and kinds.isdisjoint({"broke", "failed", "error"}) and not (fell and failed.issuperset(fell))
    )


def _not_passed(results: Results, causes: Sequence[Cause]) -> list[CaseChange]:
    failed = {case.id for case in results.failed()}
    return [found for cause in causes if cause.kind in _REPEATED for found in cause.cases if found.id in failed]


def _commands(results: Results, causes: Sequence[Cause], amount: int, control: str) -> list[str]:
    run = _number(results.run.workflow_run_id)
    if not run or _is_recorded(results):
        # On a terminal, the command line is known, which a report does not have. Recorded traces are in no artifact.
        return []
    found = _not_passed(results, causes)
    is_mean = _only_means_fell(results, causes)
    if not found and not is_mean and not results.can_be_proven:
        return []
    paths = [each.path for each in found] or [suite.path for suite in results.suites]
    suites = [shlex.quote(path) for path in dict.fromkeys(paths) if _is_plain(path)]
    steps = [f"{_download(run, results.run.workflow_artifact, _OF_RUN)}   # the results of this run"]
    if download := download_of(results):
        steps.append(f"{download}   # the baseline")
    if results.can_be_proven:
        steps.append(f"agenteval prove {_OF_RUN}   # side by side with the base")
    if found or is_mean:
        only = "only the case that did not pass" if amount == 1 else f"only the {amount:,} cases that did not pass"
        chosen, note = ("", "all cases: a mean is worse") if is_mean else (f"--failed-in {_OF_RUN}", only)
        named = suites if len(suites) <= _MOST_SUITES else []
        beside = baseline_option(results, control)
        words = ["agenteval run", *named, chosen, beside, f"--out {_AGAIN}" if is_mean else ""]
        steps.append(f"{' '.join(filter(None, words))}   # {note}")
    return steps


def _download(run: str, artifact: str | None, folder: str) -> str:
    return f"gh run download {run} -n {shlex.quote(_artifact(artifact) or DEFAULT_ARTIFACT)} -D {folder}"


def _is_recorded(results: Results) -> bool:
    return results.run.coverage is not None and results.run.coverage.cases is None


def _accept(results: Results, causes: Sequence[Cause]) -> str:
    chosen = [cause for cause in causes if cause.kind in _ACCEPTED]
    names = [metric.id for metric in results.comparison.open_means] if results.comparison else []
    names += [found.name for cause in chosen if cause.metric is None for found in cause.cases]
    is_blocked = results.gate is None or results.gate.exit_status != 0
    if not is_blocked or not names or one_cause_is_likely(causes):
        return ""
    # Without names, everything that was found is accepted.
    listed = [shlex.quote(name) for name in names] if len(names) <= _MOST_NAMES and all(map(_is_plain, names)) else []
    run, named = _number(results.run.workflow_run_id), _artifact(results.run.workflow_artifact)
    artifact = f" --artifact {shlex.quote(named)}" if named else ""
    is_part = results.run.coverage is not None and bool(results.run.coverage.selection_note)
    where = f"--run {run}{artifact}" if run else f"--from {_AGAIN if is_part else _FOLDER}"
    return " ".join(["agenteval accept", *listed, where, '--reason "…"'])


def _helps(causes: Sequence[Cause]) -> tuple[str, ...]:
    errors = [cause for cause in causes if cause.kind == "error"]
    for cause, (pattern, helps) in product(errors, _HELPS):
        if re.search(pattern, cause.words.lower()):
            wrong = cause.example.wrong if cause.example else None
            return helps if helps is not _NO_AGENT or wrong is None or wrong.metric == "agent" else _NO_JUDGE
    return ()


def _number(id_: str | None) -> str:
    return id_ if id_ and id_.isascii() and id_.isdigit() else ""


def _artifact(name: str | None) -> str:
    return name if name and name != DEFAULT_ARTIFACT and _is_plain(name) else ""


def _is_plain(text: str) -> bool:
    # What outlets would change, such as the gap in a long run of backticks, cannot be copied.
    shown = (escape.terminal(escape.one_line(text)), escape.markdown_block(text).strip("\n"))
    is_same = shown[0] == text and text in shown[1]
    return len(text) <= _LONGEST_ARGUMENT and is_same and not text.startswith("-")
