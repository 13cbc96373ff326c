"""Runs a program with all its children and measures its cost."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_KIB_PER_MIB = 1024


class ProgramError(Exception):
    """A program failed, took too long, or did not do all of the work."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time (user and system) and wall time in seconds, and memory in MiB, of a process and its children.

    The memory is the peak of the largest process, not the sum.
    """

    cpu_s: float
    wall_s: float
    peak_mib: float


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        statistics.median(cost.cpu_s for cost in costs),
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.peak_mib for cost in costs),
    )


def run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limit_s: float) -> Cost:
    """Run a program in ``folder`` to its end; its output is written to ``output.txt`` there.

    Raises:
        ProgramError: it ended with a status other than 0, or was killed after ``limit_s``; the message contains the
            end of its output.
    """
    log = folder / "output.txt"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        timer.cancel()
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        reason = f"took more than {limit_s:.0f} s" if wall >= limit_s else f"ended with status {process.returncode}"
        raise ProgramError(f"{reason}: {_end(log)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / _KIB_PER_MIB)


def _end(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return " / ".join(line.strip() for line in lines[-8:] if line.strip())
