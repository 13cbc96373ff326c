"""What tells the attempts of a pull request apart: the key of everything that can change the verdict."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agenteval.core.errors import AgentEvalError
from agenteval.core.text import working_directory
from agenteval.core.version import __version__
from agenteval.results.model import COMMIT
from agenteval.run.attempts.key import AttemptKey, attempt_key
from agenteval.run.confirm.clone import Clone
from agenteval.run.git import ControlHost
from agenteval.run.resolve.spec import GateSpec, RunSpec


@dataclass(frozen=True)
class Identity:
    """The identity of one attempt.

    Attributes:
        key: hashes of the files, the control and the conditions. They are random if these are unknown.
        control: the commit that the attempt is compared with; ``None`` if unknown.
    """

    key: AttemptKey
    control: str | None = None
    warnings: tuple[str, ...] = ()


def identity_of_run(spec: RunSpec) -> Identity:
    """Return the identity of a run, before user code runs.

    All shards of a run have the same one. What fails the job is decided where they are merged.
    """
    conditions: Mapping[str, object]
    if spec.shard is not None:
        conditions = {
            # Only a baseline with durations divides the cases.
            "compared": spec.shard.divided_by is not None,
            "cases": spec.shard.cases,
            "iterations": spec.coverage.iterations,
            "shards": spec.shard.count,
        }
    else:
        conditions = _of_whole_run(spec, ((item.case.id, item.iterations) for item in spec.cases))
    # The workflow can choose them without a change of a file.
    chosen = {"config": spec.of_run.name, "setup": spec.setup.commands}
    return _identified(spec, spec.control_host, {**conditions, **chosen})


def identity_of_results(spec: GateSpec, host: ControlHost, cases: Iterable[tuple[str, int]]) -> Identity:
    """Return the identity of the results of a whole run of the files that are checked out."""
    return _identified(spec, host, _of_whole_run(spec, cases))


def _of_whole_run(spec: GateSpec, cases: Iterable[tuple[str, int]]) -> Mapping[str, object]:
    required = spec.gate.required
    return {
        "compared": spec.baseline is not None,
        "cases": [list(item) for item in cases],
        "fail_on": sorted(spec.gate.fail_on),
        "required": [required.strict, *required.patterns],
    }


def _identified(spec: GateSpec, host: ControlHost, conditions: Mapping[str, object]) -> Identity:
    control: str | None = None
    try:
        clone = Clone.find(working_directory(), host)
        control = _control(clone, spec.baseline.results.run.commit if spec.baseline else None)
        known = {"version": __version__, "control": control, **_in_force(spec), **conditions}
        return Identity(attempt_key(clone.root, spec.ignore, known), control)
    except AgentEvalError as error:
        note = f"it is unknown whether the files of this pull request have changed since its last run: {error}"
        unknown = secrets.token_hex(32)
        return Identity(AttemptKey(unknown, unknown), control, (spec.redact(note),))


def _in_force(spec: GateSpec) -> Mapping[str, object]:
    """Return what ends on a date. Changes can also be accepted without a change of a file."""
    today = datetime.now(UTC).date()
    return {
        "accepted": sorted(entry.key for entry in spec.integrity.accepted),
        "quarantine": sorted(str(entry) for entry in spec.gate.quarantine if today <= entry.until),
    }


def _control(clone: Clone, baseline: str | None) -> str | None:
    """Return the control; the commit of the baseline if it is unknown, and ``None`` without any."""
    try:
        return clone.control(baseline).commit
    except AgentEvalError:
        # The commit is a text from a file.
        return baseline if baseline and COMMIT.fullmatch(baseline) else None
