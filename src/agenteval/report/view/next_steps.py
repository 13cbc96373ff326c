"""What to do about a run that is blocked: the commands that repeat its cases, accept them, and what usually helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.core.text import escape
from agenteval.report.view.causes import Cause, Finding
from agenteval.report.view.heading import one_cause_is_likely
from agenteval.results.model import DEFAULT_ARTIFACT, Results

_FOLDER = "agenteval-report"
_MOST_SUITES = 3
_MOST_NAMES = 3
_LONGEST_ARGUMENT = 100
_REPEATED = frozenset({"broke", "failed", "error", "fell", "maybe"})
_ACCEPTED = frozenset({"broke", "removed", "fell"})

_HELPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"connect|refused|(?<!limit was )reach|resolve|name or service|listens",
        (
            "Is the agent started before this step, and ready? Wait for it in a step before.",
            "In a container, the services of a job are called by their names: http://agent:8000, not 127.0.0.1.",
        ),
    ),
    (
        r"\b40[13]\b|unauthori[sz]ed|forbidden|api.?key|credential|permission",
        ("Is the secret set, and named in env of the step? Runs of forks get no secrets.",),
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


@dataclass(frozen=True, slots=True)
class NextSteps:
    """The next steps of a run.

    Attributes:
        commands: that repeat the cases which need attention.
        accept: the command that accepts what was found; empty if it is no likely intention.
        helps: what usually helps if cases could not be run.
    """

    commands: tuple[str, ...] = ()
    accept: str = ""
    helps: tuple[str, ...] = ()


def next_steps(results: Results, causes: Sequence[Cause]) -> NextSteps:
    """Return the next steps of a run; empty if nothing needs attention.

    Args:
        results: the run.
        causes: of the run.
    """
    return NextSteps(tuple(_commands(results, causes)), _accept(results, causes), _helps(causes))


def only_passing_fell(results: Results, causes: Sequence[Cause]) -> bool:
    """Return whether a mean fell over cases that pass, so that running the others again shows nothing."""
    return any(cause.kind == "fell" for cause in causes) and not _not_passed(results, causes)


def open_cases(results: Results) -> int:
    """Return how many cases `--failed` runs again: also those whose judge a limit left out."""
    summary = results.summary
    left_out = sum(case.is_open for _, case in results.cases() if case.status == "skipped") if summary.skipped else 0
    return summary.failed + summary.errors + left_out


def _not_passed(results: Results, causes: Sequence[Cause]) -> list[Finding]:
    """Return the cases of causes to repeat that did not pass."""
    failed = {case.id for case in results.failed()}
    return [found for cause in causes if cause.kind in _REPEATED for found in cause.cases if found.id in failed]


def _commands(results: Results, causes: Sequence[Cause]) -> list[str]:
    if _is_recorded(results):
        # The command needs the traces, which are not in the artifact.
        return []
    amount = open_cases(results)
    found = _not_passed(results, causes)
    if not found and not only_passing_fell(results, causes):
        return []
    paths = [each.path for each in found] or [suite.path for suite in results.suites]
    suites = [shlex.quote(path) for path in dict.fromkeys(paths) if _is_plain(path)]
    named = " ".join(suites) if len(suites) <= _MOST_SUITES else ""
    if not found:
        return [
            f"{' '.join(filter(None, ('agenteval run', named)))}   # all cases: the mean fell over cases that pass"
        ]
    run, folder = _run_id(results), _FOLDER
    artifact = shlex.quote(_artifact(results) or DEFAULT_ARTIFACT)
    download = [f"gh run download {run} -n {artifact} -D {folder}   # the results of this run"] if run else []
    repeat = " ".join(part for part in ("agenteval run", named, f"--failed-in {folder}") if part)
    only = "only the case that did not pass" if amount == 1 else f"only the {amount:,} cases that did not pass"
    return [*download, f"{repeat}   # {only}"]


def _is_recorded(results: Results) -> bool:
    return results.run.coverage is not None and results.run.coverage.cases is None


def _accept(results: Results, causes: Sequence[Cause]) -> str:
    chosen = [cause for cause in causes if cause.kind in _ACCEPTED]
    if not chosen or one_cause_is_likely(causes):
        return ""
    names = [cause.metric.id for cause in chosen if cause.metric is not None]
    names += [found.name for cause in chosen if cause.metric is None for found in cause.cases]
    # Without names, everything that was found is accepted.
    listed = [shlex.quote(name) for name in names] if len(names) <= _MOST_NAMES and all(map(_is_plain, names)) else []
    run = _run_id(results)
    artifact = f" --artifact {shlex.quote(_artifact(results))}" if _artifact(results) else ""
    where = f"--run {run}{artifact}" if run else f"--from {_FOLDER}"
    return " ".join(["agenteval accept", *listed, where, '--reason "…"'])


def _helps(causes: Sequence[Cause]) -> tuple[str, ...]:
    texts = " ".join(cause.words for cause in causes if cause.kind == "error").lower()
    return next((helps for pattern, helps in _HELPS if texts and re.search(pattern, texts)), ())


def _run_id(results: Results) -> str:
    run = results.run.workflow_run_id or ""
    return run if run.isascii() and run.isdigit() else ""


def _artifact(results: Results) -> str:
    """Return the name of the artifact, unless it is the default."""
    name = results.run.workflow_artifact or ""
    return name if name != DEFAULT_ARTIFACT and _is_plain(name) else ""


def _is_plain(text: str) -> bool:
    """Return whether a text can be an argument of a command as it is shown."""
    return (
        len(text) <= _LONGEST_ARGUMENT and escape.terminal(escape.one_line(text)) == text and not text.startswith("-")
    )
