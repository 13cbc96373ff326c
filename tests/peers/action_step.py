"""Runs the action as GitHub's runner does: as a process, and in the image if one was built.

``AGENTEVAL_IMAGE`` names the image and ``AGENTEVAL_IMAGE_RUN`` the script that runs it as GitHub's runner does:
``SCRIPT IMAGE WORKSPACE ENVFILE``, with the event in ``IMAGE_RUN_EVENT``, its files in ``IMAGE_RUN_DIR`` and, for the
end of a step, its entry point in ``IMAGE_RUN_ENTRYPOINT``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from github.PullRequest import PullRequest
from tests.command_client import read_at_start
from tests.peers.github_emulator import OWNER, OWNER_TOKEN, REPOSITORY
from tests.support import Ended, agenteval

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
IMAGE = os.environ.get("AGENTEVAL_IMAGE")

_FILE = re.compile(r"(?ms)^([\w-]+)<<(\S+)\n(.*?)\n?\2\n")


@dataclass(frozen=True)
class Step:
    """What one step of a workflow left behind."""

    status: int
    outputs: Mapping[str, str]
    summary: str
    log: str
    state: Mapping[str, str] = field(default_factory=dict)


def job_environment(url: str, event: str, **inputs: str) -> dict[str, str]:
    """What the runner sets for a job of the repository, and the inputs of its step."""
    return {
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": url,
        "GITHUB_ACTOR": OWNER,
        "GITHUB_RUN_ID": "4711",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_WORKFLOW": "agenteval",
        "GITHUB_JOB": "evaluate",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/agenteval.yml@refs/heads/main",
        "GITHUB_REF": "refs/heads/main",
        "INPUT_GITHUB-TOKEN": OWNER_TOKEN,
        **{f"INPUT_{name.upper().replace('_', '-')}": value for name, value in inputs.items()},
    }


def written(folder: Path, payload: Mapping[str, Any]) -> Path:
    """The file of an event."""
    path = folder / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    return path


def of_pull_request(pull: PullRequest, folder: Path, head: str = REPOSITORY) -> Path:
    """The event of a pull request whose branch is in a repository."""
    payload = {
        "action": "synchronize",
        "number": pull.number,
        "pull_request": {
            "number": pull.number,
            "head": {"sha": pull.head.sha, "ref": pull.head.ref, "repo": {"full_name": head}},
            "base": {"sha": pull.base.sha, "ref": "main", "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY, "default_branch": "main"},
    }
    return written(folder, payload)


class Runner(Protocol):
    """Runs the action on an event; its end if ``clean_up``."""

    def __call__(
        self, workspace: Path, environment: Mapping[str, str], event: Path, *, clean_up: bool = False
    ) -> Step: ...


def process_files(workspace: Path) -> dict[str, str]:
    """New empty files that the runner reads after a step."""
    folder = workspace.parent / "files"
    folder.mkdir(exist_ok=True)
    names = {"GITHUB_OUTPUT": "set_output", "GITHUB_STEP_SUMMARY": "step_summary", "GITHUB_STATE": "save_state"}
    for name in names.values():
        (folder / name).write_text("", encoding="utf-8")
    return {variable: str(folder / name) for variable, name in names.items()}


def process_environment(workspace: Path, environment: Mapping[str, str], event: Path) -> dict[str, str]:
    """The environment of a step that runs as a process."""
    return {
        # Programs of root's home directory would be of no use to another user.
        "PATH": os.environ["PATH"] if os.geteuid() != 0 else "/usr/local/bin:/usr/bin:/bin",
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_EVENT_PATH": str(event),
        **process_files(workspace),
        **environment,
    }


def as_process(workspace: Path, environment: Mapping[str, str], event: Path, *, clean_up: bool = False) -> Step:
    """The action in a process of this machine."""
    variables = read_at_start(os.environ) | process_environment(workspace, environment, event)
    done = agenteval("action", *(["--clean-up"] if clean_up else []), cwd=workspace, env=variables)
    return step_of(done, Path(variables["GITHUB_OUTPUT"]).parent)


def in_container(workspace: Path, environment: Mapping[str, str], event: Path, *, clean_up: bool = False) -> Step:
    """The action in its image."""
    folder = workspace.parent / "run"
    shutil.rmtree(folder, ignore_errors=True)
    variables = workspace.parent / "environment"
    lines = (f"{name}<<END-OF-VALUE\n{value}\nEND-OF-VALUE\n" for name, value in environment.items())
    variables.write_text("".join(lines), encoding="utf-8")
    entry = {"IMAGE_RUN_ENTRYPOINT": "/usr/local/bin/agenteval-clean-up"} if clean_up else {}
    done = subprocess.run(
        [os.environ["AGENTEVAL_IMAGE_RUN"], str(IMAGE), str(workspace), str(variables)],
        env={**os.environ, "IMAGE_RUN_DIR": str(folder), "IMAGE_RUN_EVENT": str(event), **entry},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return step_of(Ended(done.returncode, done.stdout, done.stderr), folder / "file_commands")


def step_of(done: Ended, files: Path) -> Step:
    """What is in the runner's files now."""
    return Step(
        status=done.status,
        outputs=values_in(files / "set_output"),
        summary=(files / "step_summary").read_text(encoding="utf-8"),
        log=done.text,
        state=values_in(files / "save_state"),
    )


def values_in(file: Path) -> dict[str, str]:
    """The names and values in one of the runner's files; of two with the same name the later one counts."""
    return {name: value for name, _, value in _FILE.findall(file.read_text(encoding="utf-8"))}
