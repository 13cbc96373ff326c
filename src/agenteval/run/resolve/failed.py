"""The cases of an earlier run that did not pass, from its results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import below
from agenteval.results.model import Results
from agenteval.results.store import RESULTS_FILE, read_results


@dataclass(frozen=True)
class FailedCases:
    """The cases of a run that broke, failed or could not be run.

    Attributes:
        file: the results of the run.
        ids: ids of the cases, in the order of the results.
    """

    file: str
    ids: tuple[str, ...]


def failed_cases(path: Path) -> FailedCases:
    """Return the cases of a run that did not pass.

    Args:
        path: the results, a directory with them, or a directory with the results of the run and of its baseline.

    Raises:
        ConfigError: there are no readable results, those of several runs, or of an interrupted one, or every case
            passed.
    """
    try:
        file, results = _run_in(path)
    except ConfigError as error:
        hint = "--failed and --failed-in take the cases of an earlier run"
        raise ConfigError(replace(item, message=f"{item.message}; {hint}") for item in error.problems) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(path), kind=Kind.RESULTS)) from None
    if results.unfinished:
        message = f"the run was interrupted before {results.unfinished} of its cases had finished; --resume runs them"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))
    ids = _failed(results)
    if not ids:
        raise ConfigError(
            Problem("no case failed in this run, so none is to be run again", file=str(file), kind=Kind.RESULTS)
        )
    return FailedCases(str(file), ids)


def _failed(results: Results) -> tuple[str, ...]:
    compared = results.comparison.cases if results.comparison else []
    broke = {case.id for case in compared if case.change == "regressed"}
    return tuple(case.id for _, case in results.cases() if case.id in broke or case.is_open)


def _run_in(path: Path) -> tuple[Path, Results]:
    """Return the results that a path names: of several, those that are no baseline of the others."""
    if not path.is_dir() or (path / RESULTS_FILE).exists():
        file = path / RESULTS_FILE if path.is_dir() else path
        return file, read_results(file)
    files = [folder / RESULTS_FILE for folder, _, names in below(path) if RESULTS_FILE in names]
    found = [(file, read_results(file)) for file in files]
    if not found:
        raise ConfigError(Problem(f"no {RESULTS_FILE} in this directory", file=str(path), kind=Kind.RESULTS))
    baselines = {results.comparison.baseline.run_id for _, results in found if results.comparison}
    runs = [(file, results) for file, results in found if results.run.id not in baselines]
    if len(runs) != 1:
        names = ", ".join(str(file) for file, _ in found)
        raise ConfigError(
            Problem(f"contains the results of several runs; name one of {names}", file=str(path), kind=Kind.RESULTS)
        )
    return runs[0]
