"""Functions of the public API that run nothing: read results, compare two runs, load suites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval.compare.gate import GatePolicy
    from agenteval.results.model import Comparison, Results
    from agenteval.suite.model import Suite


def read_results(path: str | Path, *, like: Results | None = None) -> Results:
    """Read a finished run: a ``results.json``, or the results of HoloDeck, FluxLoop or promptfoo.

    Args:
        path: the file, or the directory that contains it.
        like: a run of the same suites; cases of another tool's results get the ids that they have there.

    Raises:
        ConfigError: the file does not exist, is broken, or is of no known tool.
    """
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    results, _ = read_run(Path(path), suites_of(like) if like else ())
    return results


def compare(current: Results, baseline: Results, *, gate: GatePolicy | None = None) -> Comparison:
    """Compare two finished runs by the statistics of the gate, without reading a file or running a case.

    Args:
        current: the run in question.
        baseline: the run before it.
        gate: its quarantined cases do not count; without it every case counts.

    Returns:
        The verdict, with every compared metric and case. A regression that a further run would have to confirm is
        decided by this one run, as with ``confirm: off``.
    """
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.policy import ComparePolicy
    from agenteval.compare.statistics.parameters import GateParameters

    policy = ComparePolicy(parameters=GateParameters(confirm="off"), quarantine=gate.quarantine if gate else ())
    return Comparer(current, baseline, {case.id for _, case in current.cases()}, policy).decide()


def load_suites(*paths: str | Path) -> list[Suite]:
    """Load suites of any known format.

    Args:
        *paths: suite files, or directories whose suites lie at the conventional places.

    Raises:
        ConfigError: with every problem of every file.
    """
    from agenteval.core.errors import ConfigError, Problem
    from agenteval.suite.formats import registry

    problems: list[Problem] = []
    suites = registry.load_suites([Path(path) for path in paths], problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return suites
