"""Coverage-guided fuzzing: ``make fuzz ARGS="--seconds 60 --target NAME"``.

Every target runs in a process of its own, as libFuzzer ends the process that it runs in. What it keeps as new goes to
``found/``, what broke a parser to ``crashes/``; both are out of version control. ``--keep`` adds to the corpus what
reaches code that nothing in it reaches.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz.catalog import CORPUS, FOLDER, NAMES, corpus, folders, target
from tests.fuzz.mutations import mutated

FOUND, CRASHES = FOLDER / "found", FOLDER / "crashes"
_LONGEST = 64 * 1024  # bytes of an input
_SLOWEST_S = 10
_MEMORY_MB = 1500  # of the process, some hundred of which are the program's own
_DONE = re.compile(rb"^(?:stat::number_of_executed_units:\s+|Done )(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What came of one target."""

    inputs: int
    failed: bool


def main() -> int:
    """Run the targets one after the other; the status is 1 if any of them broke."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--target", action="append", choices=NAMES, help="instead of all of them; may be repeated")
    parser.add_argument("--keep", action="store_true", help="add to the corpus what reaches new code")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    names = options.target or NAMES
    if options.in_process:
        _fuzz(names[0], rest)
    failed = False
    for name in names:
        outcome = _run(name, options.seconds)
        failed = failed or outcome.failed
        broke = "BROKE, see tests/fuzz/crashes" if outcome.failed else ""
        print(f"{name:20} {outcome.inputs:>12,} inputs {broke}".rstrip(), flush=True)
        if options.keep:
            _start(name, ["-merge=1", str(CORPUS / name), str(FOUND / name)])
    return int(failed)


def _run(name: str, seconds: int) -> Outcome:
    for folder in (FOUND / name, CRASHES):
        folder.mkdir(parents=True, exist_ok=True)
    done = _start(
        name,
        [
            f"-max_total_time={seconds}",
            f"-max_len={_LONGEST}",
            f"-timeout={6 * _SLOWEST_S}",
            f"-rss_limit_mb={_MEMORY_MB}",
            f"-artifact_prefix={CRASHES / name}-",
            "-print_final_stats=1",
            str(FOUND / name),
            *map(str, folders(name)),
        ],
    )
    failed = done.returncode != 0
    if failed:
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-4000:])
    found = _DONE.findall(done.stderr)
    return Outcome(int(found[-1]) if found else 0, failed)


def _start(name: str, arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tests.fuzz.run", "--in-process", "--target", name, *arguments]
    # libFuzzer ends the process without any cleaning up.
    with TemporaryDirectory(prefix="agenteval-fuzz-") as folder:
        return subprocess.run(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": folder}, check=False)


def _fuzz(name: str, arguments: list[str]) -> None:
    # Only the virtual environment of `make fuzz` has it.
    import importlib

    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["agenteval"]):
        run = target(name)

    def timed(data: bytes) -> None:
        begin = time.process_time()
        run(data)
        if time.process_time() - begin > _SLOWEST_S:
            raise TimeoutError(f"took more than {_SLOWEST_S} seconds of processor time")

    seeds = [path.read_bytes() for path in corpus(name)]

    def change(data: bytes, largest: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            changed: bytes = atheris.Mutate(data, largest)
            return changed
        return mutated(data, random.choice(seeds), random)[:largest]

    atheris.Setup([f"fuzz {name}", *arguments], timed, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
