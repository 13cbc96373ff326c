"""The repository and commit that a run evaluates."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.process.run_confined import run_confined


@dataclass(frozen=True)
class Provenance:
    """The repository, commit and environment of a run; ``None`` is unknown.

    Attributes:
        artifact: name of the artifact that will contain the results; ``None`` also for the default name.
    """

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    workflow_run_id: str | None = None
    artifact: str | None = None


def provenance(environment: Mapping[str, str], directory: Path) -> Provenance:
    """Return the provenance: in a workflow from GitHub's variables, else from git in the directory."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return Provenance(
            commit=environment.get("GITHUB_SHA") or None,
            ref=environment.get("GITHUB_REF") or None,
            repository=environment.get("GITHUB_REPOSITORY") or None,
            workflow_run_id=environment.get("GITHUB_RUN_ID") or None,
        )
    return Provenance(
        commit=_git(directory, "rev-parse", "HEAD"), ref=_git(directory, "symbolic-ref", "--quiet", "HEAD")
    )


def _git(directory: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = run_confined([program, *arguments], directory, timeout_s=10, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
