"""Checks what was read for a run: problems that keep it from starting, and options of the gate without an effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agenteval.compare.policy import ComparePolicy, quarantine_warnings
from agenteval.core.errors import Problem
from agenteval.core.text.redact import Redactor
from agenteval.run.context import RunContext
from agenteval.run.resolve.redactor import SECRET_LENGTH
from agenteval.run.settings import Settings
from agenteval.suite.formats.registry import conventional_places
from agenteval.suite.model import Suite

if TYPE_CHECKING:
    from agenteval.run.resolve.spec import Selection


def contradictions(settings: Settings) -> list[Problem]:
    """Return options that cannot be used together."""
    if settings.traces is None or settings.shard is None:
        return []
    message = "recorded traces cannot be divided; give each machine files of its own instead"
    return [Problem(f"--shard with --traces: {message}")]


def no_suite() -> Problem:
    """Return the problem of a run that has no suite."""
    message = f"no suite given, and none in this directory (looked for {conventional_places()})"
    return Problem(f"{message}; name one: agenteval run path/to/agent.yaml")


def without_cases(suites: Sequence[Suite]) -> list[Problem]:
    """Return a problem for every suite without a case: it would always pass."""
    message = "there is no case to run"
    recorded = f"{message}: it names no inputs; give recorded traces with --traces PATH"
    return [Problem(recorded if suite.metrics else message, file=suite.path) for suite in suites if not suite.cases]


def without_metrics(suites: Sequence[Suite]) -> list[Problem]:
    """Return a problem for every suite without metrics for all answers: it cannot score recorded ones."""
    message = "--traces: recorded traces cannot be scored with this suite: its metrics belong to single cases"
    return [Problem(message, file=suite.path) for suite in suites if not suite.metrics]


def secret_names(suites: Sequence[Suite], secrets: Iterable[str]) -> list[Problem]:
    """Return a problem for every case with a secret in its name: names are compared, so reports show them."""
    redact = Redactor(secret for secret in secrets if len(secret) >= SECRET_LENGTH)
    message = "a secret from the environment is part of the name of a case, which every report shows"
    return [
        Problem(message, file=suite.path, line=case.line)
        for suite in suites
        for case in suite.cases
        if redact(name := case.id.removeprefix(suite.path)) != name
    ]


def nothing_selected(selection: Selection) -> Problem:
    """Return the problem of a selection without a case."""
    asked = [f"--filter {selection.text!r}"] if selection.text else []
    asked += [f"--tag {tag}" for tag in selection.tags]
    return Problem(f"no case matches {' and '.join(asked)}")


def gate_warnings(
    settings: Settings, context: RunContext, suites: Sequence[Suite], policy: ComparePolicy
) -> tuple[str, ...]:
    """Return a warning for each option of the gate without an effect."""
    today = datetime.now(UTC).date()
    warnings: tuple[str, ...] = ()
    # The cases of recorded traces are not known before the traces are read.
    if settings.traces is None and policy.quarantine:
        cases = {(case.id, case.name) for suite in suites for case in suite.cases}
        warnings += quarantine_warnings(policy.quarantine, cases, today)
    if settings.control and not ((settings.baseline or context.baseline) and policy.confirms_beside_base):
        warnings += ("--control has no effect without --baseline and `gate: {confirm: base}` or both",)
    return warnings
