"""Makes small changes to the gate, the rollup of statuses and the escaping, and prints those that no test notices.

Usage: ``python -m scripts.mutation [PART…]``. Needs cosmic-ray, whose operators make the changes. Each change is
tested in a copy of this process, so that nothing but the changed module is imported again.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from unittest.mock import patch

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
# Imported once for all changes; they import none of the changed modules.
_SHARED = ("hypothesis.strategies", "jinja2", "markdown_it", "numpy", "pydantic", "pytest", "rich.console", "yaml")
# A change can make a loop endless.
_MOST_CPU_S = 120


@dataclass(frozen=True)
class Part:
    """A module, and the tests that have to notice any change of it."""

    module: str
    tests: Sequence[str]

    @property
    def path(self) -> Path:
        """The file of the module."""
        return ROOT / "src" / Path(*self.module.split(".")).with_suffix(".py")


PARTS = {
    "gate": Part(
        "agenteval.compare.gate",
        (
            *("tests/unit/compare/test_gate.py", "tests/unit/compare/test_gate_failures.py"),
            *("tests/unit/compare/test_exit_status.py", "tests/unit/compare/test_policy.py"),
        ),
    ),
    "rollup": Part("agenteval.results.rollup", ("tests/unit/results/test_rollup.py",)),
    "escape": Part(
        "agenteval.core.text.escape",
        ("tests/unit/core/text/test_escape.py", "tests/unit/report/test_hostile_outlets.py"),
    ),
}


def changes(source: str) -> Iterator[str]:
    """Yield the source with one change each."""
    seen = {source}
    for name in operator_names():
        operator = get_operator(name)
        # Annotations are not evaluated, so `|` in them has no effect.
        if operator.arguments() or "BitOr" in name:
            continue
        for occurrence in range(len(source)):
            changed = mutate_code(source, operator(), occurrence)
            if changed is None:
                break
            if changed not in seen:
                seen.add(changed)
                yield changed


def is_noticed(part: Part, changed: str) -> bool:
    """Return whether a test of a part fails with a change."""
    copy = os.fork()
    if copy == 0:
        os._exit(_tested(part, changed))
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) != 0


def _tested(part: Part, changed: str) -> int:
    """Return 0 if the tests pass with the changed module."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if name != part.module:
            return original(loader, name)
        return compile(changed, part.path, "exec", dont_inherit=True)

    with (
        Path(os.devnull).open("w", encoding="utf-8") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
        patch.object(SourceFileLoader, "get_code", get_code),
    ):
        return int(pytest.main(["-n", "0", "-x", "-p", "no:cacheprovider", *part.tests]))


def main(names: Sequence[str]) -> int:
    """Try all changes of some parts; return 1 if one is not noticed."""
    os.chdir(ROOT)
    for name in _SHARED:
        importlib.import_module(name)
    missed = 0
    for name in names or PARTS:
        part = PARTS[name]
        source = part.path.read_text(encoding="utf-8")
        if is_noticed(part, source):
            print(f"{name}: its tests fail without a change")
            return 1
        tried = 0
        for changed in changes(source):
            tried += 1
            if not is_noticed(part, changed):
                missed += 1
                lines = difflib.unified_diff(
                    source.splitlines(), changed.splitlines(), part.module, name, n=0, lineterm=""
                )
                print("\n".join(list(lines)[2:]), flush=True)
        print(f"{name}: {tried} changes, {missed} not noticed in all so far", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
