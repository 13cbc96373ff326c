"""Checks that no input of a run is a file that the run itself replaces in its report directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agenteval.core.errors import Kind, Problem
from agenteval.core.paths import display_path, real_path
from agenteval.report.registry import ANALYSES, FILES
from agenteval.run.journal.journal import JOURNAL_FILE

# Those of an analysis have the names that FluxLoop gives to its own files.
_ANALYSIS = tuple(f"{ANALYSES}/{name}" for name in ("summary.json", "per_trace.jsonl", "report.md", "report.html"))


def replaced_inputs(out: Path, recordings: Iterable[Path], templates: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each input that would be lost.

    Args:
        out: the report directory.
        recordings: recordings that the run reads, and folders of recordings.
        templates: templates of reports.
    """
    written = {real_path(out / name) for name in (JOURNAL_FILE, ANALYSES, *_ANALYSIS, *FILES)}
    for kind, paths in (("recording", recordings), ("template", templates)):
        for path in dict.fromkeys(paths):
            if real_path(path) in written and path.exists():
                message = f"the run would replace this {kind} by a file of the same name; name another --out"
                yield Problem(message, file=display_path(path), kind=Kind.OPTION)
