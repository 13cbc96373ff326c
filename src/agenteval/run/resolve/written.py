"""Checks that no command replaces a file that it reads: a file of a suite, a recording, a template or results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.paths import display_path, real_path
from agenteval.report.presentation import Presentation
from agenteval.report.registry import ANALYSES, FILES
from agenteval.results.store import RESULTS_FILE
from agenteval.run.journal.journal import CONFIRMATION_FILE, JOURNAL_FILE

# Those of an analysis have the names that FluxLoop gives to its own files.
_ANALYSIS = tuple(f"{ANALYSES}/{name}" for name in ("summary.json", "per_trace.jsonl", "report.md", "report.html"))


def files_of_run(results: Path) -> Iterator[Path]:
    """Yield the files that a run, or a merge of runs, replaces or removes.

    Args:
        results: its results file; if this is that of a report directory, the journals beside it are removed.
    """
    out = results.parent
    yield from (results, out / ANALYSES, *rendered_files(out))
    if results.name != RESULTS_FILE:
        return
    yield out / JOURNAL_FILE
    try:
        yield from (path for path in out.iterdir() if CONFIRMATION_FILE.fullmatch(path.name))
    except OSError:
        # It does not exist yet.
        return


def rendered_files(out: Path) -> Iterator[Path]:
    """Yield the files that are rendered from results."""
    return (out / name for name in (*_ANALYSIS, *FILES))


def templates_of(look: Presentation) -> Iterator[tuple[str, Path]]:
    """Yield the templates of reports as inputs; see ``replaced_inputs``."""
    return (("template", path) for path in (look.comment_template, look.summary_template) if path is not None)


def replaced_inputs(written: Iterable[Path], inputs: Iterable[tuple[str, Path]]) -> Iterator[Problem]:
    """Yield a problem for each input that would be lost.

    Args:
        written: the files that the command writes.
        inputs: the kind of each input for messages, and its path, which may be of a folder or missing.
    """
    lost = {real_path(path) for path in written}
    for kind, path in dict.fromkeys(inputs):
        if real_path(path) in lost and path.exists():
            message = f"a report would take the place of this {kind}; write the reports to another directory"
            yield Problem(message, file=display_path(path), kind=Kind.OPTION)


def check_inputs_stay(written: Iterable[Path], inputs: Iterable[tuple[str, Path]]) -> None:
    """Check that no input would be lost; see ``replaced_inputs``.

    Raises:
        ConfigError: one would be.
    """
    problems = list(replaced_inputs(written, inputs))
    if problems:
        raise ConfigError(problems)
