"""The suites, rules and templates of the base commit, for a run and for finished results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.text import place_of
from agenteval.gate.failures import some
from agenteval.gate.integrity import Accepted, Integrity, acknowledged, in_force, settled
from agenteval.gate.pairing import own_cases
from agenteval.gate.values import BaseNames
from agenteval.report.parts import Presentation
from agenteval.results.comparison import BaselineCase
from agenteval.results.model import Difference, DifferenceKind, Effect, Results
from agenteval.run.base_commit import BaseCommit, Checkout
from agenteval.run.config import Config
from agenteval.run.git import ControlError
from agenteval.run.resolve.configurations import Sources, shortened, template_texts
from agenteval.run.resolve.control import ControlFiles, read_control_configuration, read_control_files
from agenteval.run.rules.accepted_file import read_accepted
from agenteval.suite.formats.registry import suite_files
from agenteval.suite.model import Case, Suite


def presented_by_base(own: Presentation, base: Config, place: Checkout) -> Presentation:
    """Return the templates of the base commit, with their content; the built-in one where it has none."""
    found = [
        path if path is not None and path.is_file() else None
        for path in (base.comment_template, base.summary_template)
    ]
    texts = template_texts([path for path in found if path is not None])
    # Messages show the file of the change.
    comment, summary = (path and shortened(place.here(path)) for path in found)
    return replace(
        own,
        comment_template=comment,
        summary_template=summary,
        template_texts={str(shortened(place.here(Path(path)))): text for path, text in texts.items()},
    )


def template_differences(own: Presentation, base: Presentation) -> Iterator[Difference]:
    """Yield the templates of the change that are not used, because the base commit has others or none."""
    now = template_texts([path for path in (own.comment_template, own.summary_template) if path is not None])
    before, after = (
        {f"template {path}": text for path, text in it.items()} for it in (base.template_texts or {}, now)
    )
    yield from file_differences(before, after, "setting", "base")


def file_differences(
    before: Mapping[str, object], after: Mapping[str, object], kind: DifferenceKind, effect: Effect
) -> Iterator[Difference]:
    """Yield the files whose content differs, without the content."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            old, new = ("there" if name in texts else None for texts in (before, after))
            yield Difference(kind=kind, setting=name, before=old, after=new, effect=effect)


@dataclass(frozen=True)
class BaseRules:
    """The suites and the configuration of the base commit.

    Attributes:
        files: what they contain; no suite if the base commit has none.
        place: the files of the base commit.
    """

    files: ControlFiles
    place: Checkout

    @property
    def is_empty(self) -> bool:
        """Whether the base commit has neither a suite nor a configuration."""
        return not self.files.suites and not self.files.of_run.name


def read_base_rules(
    base: BaseCommit | AgentEvalError,
    sources: Sources,
    baseline: Results | None,
    *,
    agents: bool,
) -> BaseRules:
    """Read suites and configuration of the base commit.

    Code graders run from its files too, which user code cannot change.

    Args:
        sources: the locations of suites and configuration in the change.
        baseline: the run to compare with; ``None`` without one.
        agents: whether the agent of each case is read too.
    """
    if isinstance(base, AgentEvalError):
        raise base
    place = base.check_out("rules")
    moved = sources.moved(place.there)
    # Suites that the change has moved or added are searched for.
    there = [file for path in moved.suites for file in ([path] if path.exists() else suite_files([path], []))]
    suites = tuple(dict.fromkeys((*(there or suite_files([moved.here], [])), *_lost_suites(place, baseline))))
    place.check((*moved.suites, *suites, *([moved.config] if moved.config else ())))
    if not suites:
        # A suite may be in what is missing.
        place.check(place.worktree / name for name in place.gaps)
    config = moved.config if moved.config is None or moved.config.is_file() else None
    found = replace(moved, suites=suites, config=config)
    try:
        files = read_control_files(found, agents=agents) if suites else read_control_configuration(found)
    except ConfigError as error:
        raise ControlError(f"{error}; merge a repair into the base branch") from None
    turns = (turn for suite in files.suites for case in suite.cases for turn in case.turns)
    place.check(Path(file.path) for turn in turns for file in turn.files if file.path is not None)
    return BaseRules(files, place)


def _lost_suites(place: Checkout, baseline: Results | None) -> Iterator[Path]:
    # Paths in results contain no links, so a path that leads through one is another file.
    for suite in baseline.suites if baseline else ():
        try:
            file = place.worktree / suite.path
            is_there = file.resolve().is_relative_to(place.worktree) and file.is_file()
        except (OSError, ValueError):
            # No file can have this path.
            continue
        if is_there and place_of(suite.path) != place.root / suite.path:
            yield file


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


def _differs(ours: BaselineCase, theirs: Case) -> bool:
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
    """
    entries = read_accepted(here, redact)
    accepted = in_force(entries, then.run.accepted if then else (), datetime.now(UTC).date())
    passing = {case.id for _, case in then.cases() if case.status == "passed"} if then else None
    every = (*accepted, *given)
    differences = tuple(acknowledged(_with_effect(item, passing), every) for item in now.run.integrity)
    keys = tuple(entry.key for entry in entries)
    return Integrity(differences=differences, accepted=settled(every, differences), keys=keys)


def _with_effect(difference: Difference, passing: Collection[str] | None) -> Difference:
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
