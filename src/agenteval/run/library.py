"""Functions of the public API that run no case: read results, compare two runs, load suites."""

from __future__ import annotations

from pathlib import Path

from pydantic import InstanceOf

from agenteval.compare.gate import GatePolicy
from agenteval.core.arguments import FilePath, checked
from agenteval.core.paths import working_directory
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.run.baseline import baseline_of, check_baseline, check_not_shard
from agenteval.suite.model import Suite


@checked
def read_results(path: FilePath, *, like: InstanceOf[Results] | None = None) -> Results:
    """Read a finished run: a ``results.json``, or a results file of HoloDeck, FluxLoop or promptfoo.

    Args:
        path: the file, or the directory that contains it.
        like: a run of the same suites; cases of another tool's file get the ids of its cases.

    Raises:
        ConfigError: the file does not exist, is damaged, or has an unknown format, or an argument is wrong.
    """
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    results, _ = read_run(Path(path), suites_of(like) if like else ())
    return results


@checked
def compare(
    current: InstanceOf[Results], baseline: InstanceOf[Results], *, gate: GatePolicy | None = None
) -> Comparison:
    """Compare two finished runs with the statistics of the gate; no file is read and no case runs.

    Args:
        current: the run to check.
        baseline: the earlier run.
        gate: its quarantined cases are excluded; without it every case counts.

    Returns:
        The verdict, with every compared metric and case. Nothing runs again: an unmistakable drop is ``regressed``,
        and another suspicion is ``unproven``.

    Raises:
        ConfigError: an argument is wrong, the current run is a shard, or the earlier run cannot be a baseline.
    """
    check_not_shard(current, None)
    check_baseline(baseline, None)
    from agenteval.compare.policy import ComparePolicy
    from agenteval.run.finished_runs import compare_finished

    policy = ComparePolicy(quarantine=gate.quarantine if gate else ()).without_confirmation()
    return compare_finished(current, baseline_of(baseline), policy)


@checked
def load_suites(*paths: FilePath) -> list[Suite]:
    """Load suites of any supported format.

    The ``agenteval.yaml`` of each suite lists the secret-like variables that its texts may use (``allow_env``).

    Args:
        *paths: suite files, or directories with suites in the conventional places.

    Raises:
        ConfigError: files are not valid; the error contains every problem of every file.
    """
    from agenteval.core.errors import ConfigError, Problem
    from agenteval.run.config.allow_env import read_allowed
    from agenteval.run.resolve import suites
    from agenteval.run.resolve.sources import Sources

    if not paths:
        return []
    problems: list[Problem] = []
    loaded = suites.load_suites(Sources(working_directory(), tuple(Path(path) for path in paths)), problems)
    for file in loaded.places.files:
        with suites.collected(problems):
            read_allowed(file)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return list(loaded.suites)
