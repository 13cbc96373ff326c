"""Checks that no input of a run is a file that the run itself replaces in its report directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.paths import display_path, real_path
from agenteval.report.presentation import Presentation
from agenteval.report.registry import ANALYSES, FILES
from agenteval.run.journal.journal import CONFIRMATION_FILE, JOURNAL_FILE

# Those of an analysis have the names that FluxLoop gives to its own files.
_ANALYSIS = tuple(f"{ANALYSES}/{name}" for name in ("summary.json", "per_trace.jsonl", "report.md", "report.html"))


def replaced_inputs(out: Path, recordings: Iterable[Path], look: Presentation) -> Iterator[Problem]:
    """Yield a problem for each input that would be lost.

    Args:
        out: the report directory.
        recordings: recordings that the run reads, and folders of recordings.
        look: names the templates of reports.
    """
    written = {real_path(out / name) for name in (JOURNAL_FILE, ANALYSES, *_ANALYSIS, *FILES)}
    templates = [path for path in (look.comment_template, look.summary_template) if path is not None]
    for kind, paths in (("recording", recordings), ("template", templates)):
        for path in dict.fromkeys(paths):
            real = real_path(path)
            is_confirmation = CONFIRMATION_FILE.fullmatch(real.name) and real.parent == real_path(out)
            if (real in written or is_confirmation) and path.exists():
                message = f"the run would replace this {kind} by a file of the same name; name another --out"
                yield Problem(message, file=display_path(path), kind=Kind.OPTION)


def check_templates(out: Path, look: Presentation) -> None:
    """Check that no template would be lost; see ``replaced_inputs``.

    Raises:
        ConfigError: one would be.
    """
    problems = list(replaced_inputs(out, (), look))
    if problems:
        raise ConfigError(problems)
