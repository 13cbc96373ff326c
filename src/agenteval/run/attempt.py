"""The memory of a pull request: the same files get the same verdict, and what was proven must be gone."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agenteval.core.errors import AgentEvalError
from agenteval.core.files import LARGEST_RECORDING, MOST_ENTRIES, open_regular
from agenteval.core.records import replace
from agenteval.core.text import working_directory
from agenteval.core.version import __version__
from agenteval.results.model import COMMIT, Memory, Results
from agenteval.run.base_commit import BaseCommit
from agenteval.run.context import Attempt, Recollection
from agenteval.run.git import Clone, ControlError, git
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.store import JOURNAL_FILE

_SUBMODULE = "160000"
# Few files cannot change a verdict: prompts and knowledge of agents are often in files like ``*.md`` or in ``docs``.
_IGNORED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
_LONGEST_PATH = 4096


def attempt_key(root: Path, conditions: object) -> str:
    """Return the key of the files that are checked out; it runs no code of the user.

    The files are those that git knows and the new ones that it does not ignore, as they are in the working tree, also
    in repositories inside of it. Report directories of agenteval do not count.

    Args:
        conditions: what else decides the verdict, as JSON.
    """
    left_out = [_without(pattern) for pattern in _IGNORED]
    digest = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode())
    for name, state in sorted(_states(root, left_out)):
        digest.update(b"\0%b\0%b" % (name, state.encode()))
    return digest.hexdigest()


def _without(pattern: str) -> str:
    return f":(top,exclude,glob){pattern if '/' in pattern else f'**/{pattern}'}"


def _states(root: Path, left_out: Sequence[str], folder: str = "") -> Iterator[tuple[bytes, str]]:
    if len(folder) > _LONGEST_PATH:
        raise ControlError(f"{root} is nested too deeply")
    paths = ("--", ":(top)", *left_out) if left_out else ()
    tracked = dict(_tracked(git(root, "ls-files", "--stage", "-z", *paths)))
    new = _without_reports(git(root, "ls-files", "--others", "--exclude-standard", "-z", *paths))
    names = sorted({*tracked, *new})
    if len(names) > MOST_ENTRIES:
        raise ControlError(f"{root} has more than {MOST_ENTRIES:,} files")
    for name in names:
        shown = os.fsencode(folder + name)
        pinned = tracked.get(name)
        # A repository that is no submodule is listed as a folder, with a slash.
        if name.endswith("/") or (pinned and (root / name / ".git").exists()):
            yield from _states(root / name, (), f"{folder}{name.rstrip('/')}/")
        elif state := pinned or _state(root / name):
            yield shown, state


def _tracked(listed: str) -> Iterator[tuple[str, str | None]]:
    for entry in listed.split("\0"):
        about, _, path = entry.partition("\t")
        if path:
            mode, blob, _ = about.split(" ")
            yield path, blob if mode == _SUBMODULE else None


def _without_reports(listed: str) -> list[str]:
    names = [name for name in listed.split("\0") if name]
    reports = {os.path.dirname(name) for name in names if os.path.basename(name) == JOURNAL_FILE}  # noqa: PTH119, PTH120
    return [name for name in names if os.path.dirname(name) not in reports]  # noqa: PTH120


def _state(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"link {hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
        with open_regular(path, limit=LARGEST_RECORDING) as file:
            mode = "program" if os.fstat(file.fileno()).st_mode & 0o100 else "file"
            return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        name = os.fsencode(path).decode(errors="replace")
        raise ControlError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


# Exit statuses above this number are signals; such a run decided nothing.
_SIGNALS = 128
_SHORT = 7


def begin_attempt(
    spec: RunSpec, config: str, base: BaseCommit | AgentEvalError | None, found: Recollection
) -> Attempt:
    """Return what follows from the newest earlier attempt; call it before user code runs.

    Args:
        config: the name of the configuration that decides about the whole run.
    """
    today = datetime.now(UTC).date()
    required = spec.gate.required
    conditions: Mapping[str, object] = {
        "cases": [[item.case.id, item.iterations] for item in spec.cases],
        # The workflow can choose them without a change of a file.
        "config": config,
        "setup": spec.setup.commands,
        # A part of what else decides ends on a date, or is chosen by the workflow.
        "compared": spec.baseline is not None,
        "accepted": sorted(entry.key for entry in spec.integrity.accepted),
        "quarantine": sorted(str(entry) for entry in spec.gate.quarantine if today <= entry.until),
        "fail_on": sorted(spec.gate.fail_on),
        "required": [required.strict, *required.patterns],
    }
    first, warnings = _first(spec, base, conditions)
    warnings += found.warnings
    if found.forgotten_by is not None:
        warnings.append(
            f"the earlier runs of this pull request were forgotten: {found.forgotten_by} set `agenteval: forget`"
        )
    first = first.model_copy(update={"forgotten_by": found.forgotten_by})
    attempt = replace(_following(found, first), warnings=tuple(warnings))
    # A green attempt is resumed if the proof of an improvement is asked for and it has none.
    can_continue = attempt.shown is not None and attempt.restore is not None and _lacks_proof(attempt.shown)
    return replace(attempt, shown=None) if can_continue and spec.compare.asked_by else attempt


def _following(found: Recollection, first: Memory) -> Attempt:
    known = found.results.memory if found.results is not None else None
    if found.results is None or known is None:
        return Attempt(first)
    decided = found.results if _is_decided(found.results) else None
    # Only the run that was forgotten for tells by whom.
    same = known.model_copy(update={"forgotten_by": None, "repeats": False})
    if known.key == first.key:
        return Attempt(same, decided, found.restore)
    if found.stays and decided is not None:
        return Attempt(same, decided)
    return Attempt(first.model_copy(update={"attempt": known.attempt + 1, "proven": known.proven}))


def _is_decided(results: Results) -> bool:
    """Return whether the verdict holds as long as no file changes: nothing outside was missing."""
    gate, comparison = results.gate, results.comparison
    if gate is None or not results.run.complete or gate.exit_status > _SIGNALS:
        return False
    return gate.verdict in {"passed", "failed"} and (comparison is None or comparison.state != "unproven")


def _lacks_proof(results: Results) -> bool:
    gate, comparison = results.gate, results.comparison
    return gate is not None and gate.passed and comparison is not None and not comparison.improvement


def _first(
    spec: RunSpec, base: BaseCommit | AgentEvalError | None, conditions: Mapping[str, object]
) -> tuple[Memory, list[str]]:
    control = base.commit if isinstance(base, BaseCommit) else spec.baseline and spec.baseline.results.run.commit
    # The commit of a baseline is a text from a file.
    control = control if control and COMMIT.fullmatch(control) else None
    known = {"version": __version__, "control": control, **conditions}
    try:
        root = Clone.find(working_directory()).root
        return Memory(attempt=1, key=attempt_key(root, known), control=control), []
    except AgentEvalError as error:
        note = f"it is unknown whether the files of this pull request have changed since its last run: {error}"
        return Memory(attempt=1, key=secrets.token_hex(32), control=control), [spec.redact(note)]
