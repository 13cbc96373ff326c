"""Runs parallel jobs as the engines of `examples/shards` do; linked as `sbatch` and `aws`, it is their program.

``DEAD_JOB`` is the index of a job, from 0, that is killed while it waits for its agent, ``MACHINES`` the folder of
the working directories, ``STORE`` that of what is uploaded.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEAD = int(os.environ.get("DEAD_JOB", "-1"))


@dataclass(frozen=True)
class Job:
    """One of the jobs: its command, its working directory and the variables of its engine."""

    command: Sequence[str]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    is_dead: bool = False


def machine(name: str, repository: Path) -> Path:
    """Return the working directory of a new machine."""
    return Path(shutil.copytree(repository, Path(os.environ["MACHINES"], name)))


def ended(jobs: Sequence[Job]) -> list[int]:
    """Run jobs at the same time; return their exit statuses."""
    running = [(job, *_started(job)) for job in jobs]
    for job, process, asked in running:
        while job.is_dead and process.poll() is None:
            if asked.exists():
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.01)
    return [process.wait() for _, process, _ in running]


def _started(job: Job) -> tuple[subprocess.Popen[bytes], Path]:
    asked = Path(tempfile.mkdtemp(dir=os.environ["MACHINES"]), "asked")
    dead = {"DEAD": str(asked)} if job.is_dead else {}
    variables = {**os.environ, **job.variables, **dead}
    # The engines keep the output elsewhere.
    process = subprocess.Popen(
        job.command, cwd=job.folder, env=variables, stdout=sys.stderr.fileno(), start_new_session=True
    )
    return process, asked


def _option(words: Sequence[str], name: str) -> str:
    """Return the value of ``--name=VALUE`` or ``--name VALUE``."""
    for number, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name:
            return words[number + 1]
    return ""


def sbatch(words: Sequence[str]) -> int:
    """Run an array, or one job, in the directory of the caller, which all nodes share."""
    command, array = ["sh", "-c", _option(words, "--wrap")], _option(words, "--array")
    assert "--wait" in words
    if not array:
        return ended([Job(command, Path())])[0]
    first, last = map(int, array.split("-"))
    names = {"COUNT": last - first + 1, "MIN": first, "MAX": last, "STEP": 1}
    fixed = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in names.items()}
    indexes = range(first, last + 1)
    return max(
        ended([Job(command, Path(), fixed | {"SLURM_ARRAY_TASK_ID": str(n)}, n - first == DEAD) for n in indexes])
    )


def aws(words: Sequence[str]) -> int:
    """Copy files, or run the jobs of `batch submit-job`."""
    if words[:3] == ["s3", "cp", "--recursive"]:
        source, target = (word.replace("s3:/", os.environ["STORE"]) for word in words[3:5])
        shutil.copytree(source, target, dirs_exist_ok=True)
        return 0
    assert words[:2] == ["batch", "submit-job"]
    name, sizes = _option(words, "--job-name"), _option(words, "--array-properties")
    command = _option(words, "--container-overrides").removeprefix("command=").split(",")
    failed = Path(os.environ["MACHINES"], "failed")
    print("job-id")
    # Batch does not start a job that depends on a failed one.
    if failed.exists():
        return 0
    jobs = [Job(command, machine(name, Path()))]
    if sizes:
        size = sizes.removeprefix("size=")
        known = {"AWS_BATCH_JOB_ARRAY_SIZE": size}
        jobs = [
            Job(command, machine(f"{name}-{n}", Path()), known | {"AWS_BATCH_JOB_ARRAY_INDEX": str(n)}, n == DEAD)
            for n in range(int(size))
        ]
    if any(ended(jobs)):
        failed.touch()
    return 0


if __name__ == "__main__":
    sys.exit({"sbatch": sbatch, "aws": aws}[Path(sys.argv[0]).name](sys.argv[1:]))
