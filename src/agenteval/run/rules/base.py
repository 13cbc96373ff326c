"""The suites, rules and templates of the base commit, for a run and for finished results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError
from agenteval.core.files import also_inside
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.text import place_of
from agenteval.gate.failures import some
from agenteval.gate.integrity.accepted import Accepted, acknowledged, in_force, settled
from agenteval.gate.integrity.integrity import Integrity
from agenteval.gate.pairing import own_cases
from agenteval.gate.policy import BaseNames
from agenteval.report.limits import Presentation
from agenteval.results.comparison import PoolCase
from agenteval.results.model import Difference, Results
from agenteval.run.config import Config
from agenteval.run.confirm.clone import Clone
from agenteval.run.confirm.control import Paths, new_place
from agenteval.run.confirm.control_tree import ControlTree
from agenteval.run.git import ControlError, ControlHost
from agenteval.run.resolve.configurations import Sources, shortened, template_texts
from agenteval.run.resolve.control import ControlFiles, read_control_configuration
from agenteval.run.rules.accepted_file import read_accepted
from agenteval.suite.formats.registry import discover, suite_files
from agenteval.suite.model import Case, Suite


def presented_by_base(own: Presentation, base: Config, paths: Paths) -> Presentation:
    """Return the templates of the base commit, with their content; the built-in one where it has none.

    Args:
        paths: where a file of the repository is in the base commit's files.
    """
    comment, summary = map(_found, (base.comment_template, base.summary_template))
    texts = template_texts([path for path in (comment, summary) if path is not None])
    return replace(
        own,
        comment_template=comment and _named(comment, paths),
        summary_template=summary and _named(summary, paths),
        template_texts={str(_named(Path(path), paths)): text for path, text in texts.items()},
    )


def _found(path: Path | None) -> Path | None:
    return path if path is not None and path.is_file() else None


def _named(path: Path, paths: Paths) -> Path:
    """Return the path that messages show for a file of the base commit: that of the file in the change."""
    return shortened(paths.here(path))


def template_differences(own: Presentation, base: Presentation) -> Iterator[Difference]:
    """Yield the templates of the change that are not used, because the base commit has others or none."""
    named = [path for path in (own.comment_template, own.summary_template) if path is not None]
    now, then = template_texts(named), base.template_texts or {}
    for path in sorted({*now, *then}):
        if now.get(path) != then.get(path):
            before, after = ("there" if path in texts else None for texts in (then, now))
            yield Difference(kind="setting", setting=f"template {path}", before=before, after=after, effect="base")


@dataclass(frozen=True)
class BaseRules:
    """The suites and the configuration of the base commit.

    Attributes:
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


_FIX = "evaluate the commit with its baseline, so that the base commit decides"


def judged_by_others(results: Results, suites: Iterable[Suite]) -> Difference | None:
    """Return that some cases were asked or judged otherwise than the base commit says; ``None`` if none was.

    Runs of the action have the base commit's versions of all cases that were not accepted. Results of other steps may
    have those of the change.

    Args:
        results: the run. Cases of other tools, and recorded traces, do not tell how they were judged.
    """
    theirs = {case.id: case for suite in suites for case in suite.cases}
    ours = own_cases(results)
    accepted = {item.case for item in results.run.integrity if item.accepted_by is not None}
    names = [
        case.name
        for _, case in results.cases()
        if case.id in theirs
        and case.id in ours
        and case.id not in accepted
        and _differs(ours[case.id], theirs[case.id])
    ]
    if not names:
        return None
    cases = "1 case" if len(names) == 1 else f"{len(names)} cases"
    return Difference(kind="rules", after=f"did not judge {cases} ({some(names)}); {_FIX}", effect="unproven")


def _differs(ours: PoolCase, theirs: Case) -> bool:
    """Return whether the question or a metric of the base commit differs; further metrics are only reported."""
    if not ours.fingerprint:
        return False
    known = theirs.fingerprints
    return ours.fingerprint != known.question or any(
        ours.metrics.get(name) != fingerprint for name, fingerprint in known.metrics.items()
    )


def integrity_of(
    now: Results, then: Results | None, here: Path, redact: Redactor, given: Iterable[Accepted] = ()
) -> Integrity:
    """Return what was accepted, for the comparison of two finished runs.

    Args:
        then: the earlier run; ``None`` without one.
        given: what people accepted on the CI host.

    Raises:
        ConfigError: the file of accepted changes is not valid.
    """
    entries = read_accepted(here, redact)
    accepted = in_force(entries, then.run.accepted if then else (), datetime.now(UTC).date())
    passing = {case.id for _, case in then.cases() if case.status == "passed"} if then else None
    every = (*accepted, *given)
    differences = tuple(acknowledged(_with_effect(item, passing), every) for item in now.run.integrity)
    keys = tuple(entry.key for entry in entries)
    return Integrity(differences=differences, accepted=settled(every, differences), keys=keys)


def _with_effect(difference: Difference, passing: Collection[str] | None) -> Difference:
    """Return a difference with its effect on a comparison with a baseline, which shards do not have.

    Args:
        passing: ids of the cases that passed in the baseline; ``None`` without one.
    """
    if difference.kind == "rules" and difference.effect == "unproven" and passing is None:
        return difference.model_copy(update={"effect": "absolute"})
    if difference.kind != "removed" or difference.accepted_by is not None or difference.case not in (passing or ()):
        return difference
    return difference.model_copy(update={"effect": "unproven"})


def with_integrity(results: Results, integrity: Integrity) -> Results:
    """Return a run that records how it differs from the base commit, and which changes were accepted."""
    recorded = {"integrity": list(integrity.differences), "accepted": list(integrity.keys)}
    return results.model_copy(update={"run": results.run.model_copy(update=recorded)})


def base_names(results: Results, suites: Iterable[Suite]) -> BaseNames:
    """Return id and name in the base commit of the cases of a run that the change renamed."""
    then = {case.id: case.name for suite in suites for case in suite.cases}
    old_id = {item.after: item.before for item in results.run.integrity if item.kind == "renamed"}
    found: dict[str, tuple[str, str]] = {}
    for _, case in results.cases():
        before = old_id.get(case.id) or case.id
        if before in then and (before, then[before]) != (case.id, case.name):
            found[case.id] = (before, then[before])
    return found
