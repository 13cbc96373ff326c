"""Reads the suites and the configuration of the base commit, without running any code of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from agenteval.core.base_commit import with_base_commit
from agenteval.core.errors import ConfigError
from agenteval.core.files.boundary import also_inside
from agenteval.core.process.confinement import confined
from agenteval.run.confirm.clone import Clone
from agenteval.run.confirm.control import Paths, new_place
from agenteval.run.confirm.control_tree import ControlTree
from agenteval.run.control_commit import ControlError, ControlHost
from agenteval.run.resolve.control import ControlFiles
from agenteval.run.resolve.sources import Sources


@dataclass(frozen=True)
class BaseRules:
    """The suites and the configuration of the base commit.

    Attributes:
        commit: its id.
        files: what they contain.
        paths: where a file of the repository is in the base commit's files, which exist as long as the run.
    """

    commit: str
    files: ControlFiles
    paths: Paths


@contextmanager
def base_rules(
    sources: Sources, host: ControlHost, baseline: str | None, read: Callable[[Sources], ControlFiles]
) -> Iterator[BaseRules]:
    """Write the files of the base commit into a separate directory, and read suites and configuration there.

    Code graders run from these files too, so user code must not be able to change them.

    Args:
        sources: the locations of suites and configuration in the change.
        host: what is known about the base commit.
        baseline: the commit that the baseline evaluated; ``None`` if it is unknown.
        read: reads the suites and the configuration.

    Raises:
        ControlError: there is no such commit, or its files cannot be read.
    """
    with new_place() as place, also_inside(place.folder):
        with confined(apart=place.apart):
            tree = ControlTree.prepare(Clone.find(sources.here, host), baseline, place.worktree)
            tree.check_out()
        paths = Paths(tree.root, tree.worktree)
        # The base commit decides about itself, if it is certain which commit that is.
        with with_base_commit(None) if tree.control.is_of_event else nullcontext():
            files = _checked(read, _in_base(sources, paths))
        yield BaseRules(tree.commit, files, paths)


def _checked(read: Callable[[Sources], ControlFiles], sources: Sources) -> ControlFiles:
    try:
        return read(sources)
    except ConfigError as error:
        raise ControlError(str(error)) from None


def _in_base(sources: Sources, paths: Paths) -> Sources:
    """Return the same files in the base commit; suites that the change has moved or added are searched for."""
    moved = sources.moved(paths.there)
    there = tuple(path for path in moved.suites if path.exists())
    config = moved.config if moved.config is None or moved.config.is_file() else None
    return replace(moved, suites=there, config=config)
