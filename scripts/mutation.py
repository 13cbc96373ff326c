"""Makes small changes to the gate, the rollup of statuses and the escaping, and prints those that no test notices.

Usage: ``python -m scripts.mutation [PART…]``. Needs cosmic-ray, whose operators make the changes. Each change is
tested in a copy of this process, so that nothing but the project is imported again. ``equivalent_changes.toml`` lists
the changes without an effect, each with the reason.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import itertools
import os
import resource
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from unittest.mock import patch

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[1]
_EQUIVALENT = Path(__file__).with_name("equivalent_changes.toml")
# Imported once for all changes; they import none of the changed modules.
_SHARED = (
    *("hypothesis.strategies", "jinja2", "lxml.etree", "markdown_it", "numpy", "pydantic", "pytest", "rich.console"),
    "yaml",
)
# The profile of Hypothesis stops at the first example that fails.
_PYTEST = ("-n", "0", "-x", "--tb=no", "--hypothesis-profile=mutation")
# A test that notices these notices the others too. For comparisons: Kaminski, Ammann and Offutt 2013, "Improving
# logic-based testing"; negations are among the other operators. Changes of `|`, which is frequent in annotations, and
# between `==` and `is` have no effect.
_ARITHMETIC = {
    "Add": ("Sub", "Mul"),
    "Sub": ("Add", "Mul"),
    "Mul": ("Add", "FloorDiv"),
    "Div": ("Mul", "FloorDiv"),
    "FloorDiv": ("Div", "Mul"),
    "Mod": ("FloorDiv", "Add"),
    "Pow": ("Mul", "Add"),
}
_COMPARISONS = {
    "Eq": ("NotEq", "LtE", "GtE"),
    "NotEq": ("Eq", "Lt", "Gt"),
    "Lt": ("LtE", "NotEq", "GtE"),
    "LtE": ("Lt", "Eq", "Gt"),
    "Gt": ("GtE", "NotEq", "LtE"),
    "GtE": ("Gt", "Eq", "Lt"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
_OPERATORS = (
    *(f"ReplaceBinaryOperator_{old}_{new}" for old, others in _ARITHMETIC.items() for new in others),
    *(f"ReplaceComparisonOperator_{old}_{new}" for old, others in _COMPARISONS.items() for new in others),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "AddNot", "ReplaceAndWithOr"),
    *("ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceBreakWithContinue"),
    *("ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"),
)
# A change can make a loop endless, or a text huge.
_MOST_MEMORY = 4 * 1024**3
_PROGRESS_S = 30


@dataclass(frozen=True)
class Part:
    """Modules, and the tests that have to notice any change of them, the quickest first."""

    modules: Sequence[str]
    tests: Sequence[str]


PARTS = {
    "escape": Part(("agenteval.core.escape",), ("tests/unit/core/text/test_escape.py",)),
    "rollup": Part(("agenteval.results.rollup",), ("tests/unit/results/test_rollup.py",)),
    "gate": Part(
        ("agenteval.gate.verdict",),
        ("tests/unit/gate/test_gate.py",),
    ),
}


def changes(source: str) -> Iterator[str]:
    """Yield the source with one change each."""
    seen = {source}
    for name in _OPERATORS:
        operator = get_operator(f"core/{name}")
        for occurrence in itertools.count():
            changed = mutate_code(source, operator(), occurrence)
            if changed is None:
                break
            if changed not in seen and _is_of_use(changed):
                seen.add(changed)
                yield changed


def _is_of_use(source: str) -> bool:
    """Return whether a source compiles, and compares words for equality only: their order has no meaning."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        # The operators take the `*` of a signature for a product.
        return False
    return not any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in node.comparators)
        for node in nodes
    )


def is_noticed(module: str, tests: Sequence[str], changed: str, most_cpu_s: int) -> bool:
    """Return whether a test fails with a changed module, or needs too much time."""
    copy = os.fork()
    if copy == 0:
        os._exit(_tested(module, tests, changed, most_cpu_s))
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) != 0


def _tested(module: str, tests: Sequence[str], changed: str, most_cpu_s: int) -> int:
    """Return 0 if the tests pass with the changed module."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if name != module:
            return original(loader, name)
        return compile(changed, _file(module), "exec", dont_inherit=True)

    with (
        Path(os.devnull).open("w", encoding="utf-8") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
        patch.object(SourceFileLoader, "get_code", get_code),
    ):
        return int(pytest.main([*_PYTEST, *tests]))


def _file(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def _difference(source: str, changed: str) -> tuple[str, str]:
    """Return the position of a change, and its lines without indentation."""
    _, _, position, *lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), n=0, lineterm="")
    return position, "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines if line[0] in "-+")


def check(name: str, module: str, tests: Sequence[str], equivalent: Counter[str]) -> bool:
    """Try all changes of a module, print those that no test notices, and return whether there is none.

    Args:
        name: the name of the part.
        module: the changed module.
        tests: the tests of the part.
        equivalent: the changes without an effect.
    """
    source = _file(module).read_text(encoding="utf-8")
    all_changes = list(changes(source))
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if is_noticed(module, tests, source, resource.RLIM_INFINITY):
        print(f"{name}: its tests fail without a change")
        return False
    most_cpu_s = 10 + 5 * int(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used)
    left, missed, shown = equivalent.copy(), 0, time.monotonic()
    for number, changed in enumerate(all_changes, 1):
        if not is_noticed(module, tests, changed, most_cpu_s):
            position, lines = _difference(source, changed)
            if left[lines]:
                left[lines] -= 1
            else:
                missed += 1
                print(f"{module} {position}\n{lines}", flush=True)
        if time.monotonic() - shown > _PROGRESS_S:
            shown = time.monotonic()
            print(f"{name}: {number} of {len(all_changes)} changes of {module} tried, {missed} missed", flush=True)
    accepted = equivalent.total() - left.total()
    noticed = len(all_changes) - accepted - missed
    print(
        f"{module}: {len(all_changes)} changes: {noticed} noticed, {accepted} equivalent, {missed} missed", flush=True
    )
    for lines in left.elements():
        print(f"{_EQUIVALENT.name} lists a change that a test notices, or that no operator makes:\n{lines}")
    return not missed and not left.total()


def main(names: Sequence[str]) -> int:
    """Try all changes of some parts; return 1 if one is not noticed."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 2
    os.chdir(ROOT)
    for name in _SHARED:
        importlib.import_module(name)
    equivalent: dict[str, Counter[str]] = {}
    for entry in tomllib.loads(_EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", []):
        equivalent.setdefault(entry["module"], Counter())[entry["change"].strip()] += entry.get("times", 1)
    results = [
        check(name, module, PARTS[name].tests, equivalent.get(module, Counter()))
        for name in names or PARTS
        for module in PARTS[name].modules
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
