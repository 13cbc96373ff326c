"""Reads the suites and the configuration of the base commit, without running any code of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.core.base_commit import with_base_commit
from agenteval.core.errors import ConfigError
from agenteval.core.files.boundary import also_inside
from agenteval.core.paths import place_of
from agenteval.core.process.confinement import confined
from agenteval.results.model import Results
from agenteval.run.confirm.clone import Clone
from agenteval.run.confirm.control import Paths, new_place
from agenteval.run.confirm.control_tree import ControlTree
from agenteval.run.control_commit import ControlError, ControlHost
from agenteval.run.resolve.control import ControlFiles, read_control_configuration
from agenteval.run.resolve.sources import Sources
from agenteval.suite.formats.registry import discover, suite_files


@dataclass(frozen=True)
class BaseRules:
    """The suites and the configuration of the base commit.

    Attributes:
        commit: its id.
        files: what they contain; no suite if the base commit has none.
        paths: where a file of the repository is in the base commit's files, which exist as long as the run.
    """

    commit: str
    files: ControlFiles
    paths: Paths

    @property
    def is_empty(self) -> bool:
        """Whether the base commit has neither a suite nor a configuration."""
        return not self.files.suites and not self.files.of_run.name


@contextmanager
def base_rules(
    sources: Sources, host: ControlHost, baseline: Results | None, read: Callable[[Sources], ControlFiles]
) -> Iterator[BaseRules]:
    """Write the files of the base commit into a separate directory, and read suites and configuration there.

    Code graders run from these files too, so user code must not be able to change them.

    Args:
        sources: the locations of suites and configuration in the change.
        host: what is known about the base commit.
        baseline: the run to compare with; ``None`` without one.
        read: reads the suites and the configuration.

    Raises:
        ControlError: there is no such commit, or its files cannot be read.
    """
    with new_place() as place, also_inside(place.folder):
        clone = Clone.find(sources.here, host)
        with confined(apart=place.apart):
            commit = baseline.run.commit if baseline else None
            tree = ControlTree.prepare(clone, clone.control(commit), place.worktree)
            tree.check_out()
        paths = Paths(tree.root, tree.worktree)
        there = _in_base(sources, paths, baseline, tree)
        # The base commit decides about itself, if it is certain which commit that is.
        with with_base_commit(None) if tree.control.is_of_event else nullcontext():
            files = _checked(read if there.suites else read_control_configuration, there)
        _refuse_gaps(tree, _attachments(files))
        yield BaseRules(tree.commit, files, paths)


def _checked(read: Callable[[Sources], ControlFiles], sources: Sources) -> ControlFiles:
    try:
        return read(sources)
    except ConfigError as error:
        raise ControlError(f"{error}; merge a repair into the base branch") from None


def _in_base(sources: Sources, paths: Paths, baseline: Results | None, tree: ControlTree) -> Sources:
    """Return the same files in the base commit; suites that the change has moved or added are searched for."""
    moved = sources.moved(paths.there)
    lost = tuple(_lost_suites(paths, baseline))
    there = tuple(file for path in moved.suites for file in _present(path)) or tuple(discover(moved.here))
    suites = tuple(dict.fromkeys((*there, *lost)))
    _refuse_gaps(tree, (*moved.suites, *suites, *([moved.config] if moved.config else ())))
    if not suites:
        # A suite may be in what is missing.
        _refuse_gaps(tree, (paths.worktree / name for name in tree.gaps))
    config = moved.config if moved.config is None or moved.config.is_file() else None
    return replace(moved, suites=suites, config=config)


def _present(path: Path) -> Sequence[Path]:
    """Return the path if it exists; the suites that a pattern matches; else nothing."""
    return [path] if path.exists() else suite_files([path], [])


def _lost_suites(paths: Paths, baseline: Results | None) -> Iterator[Path]:
    """Yield the files of the baseline's suites that the base commit has and the change has not.

    Paths in results contain no links, so a path that leads through one is another file.
    """
    for suite in baseline.suites if baseline else ():
        try:
            file = paths.worktree / suite.path
            is_there = file.resolve().is_relative_to(paths.worktree) and file.is_file()
        except (OSError, ValueError):
            # No file can have this path.
            continue
        if is_there and place_of(suite.path) != paths.root / suite.path:
            yield file


def _attachments(files: ControlFiles) -> Iterator[Path]:
    cases = (case for suite in files.suites for case in suite.cases)
    attached = (file.path for case in cases for turn in case.turns for file in turn.files)
    return (Path(path) for path in attached if path is not None)


def _refuse_gaps(tree: ControlTree, used: Iterable[Path]) -> None:
    """Refuse rules that need a file whose content is missing.

    Raises:
        ControlError: the content of a file is missing.
    """
    for why in filter(None, map(tree.gap_at, used)):
        raise ControlError(why)
