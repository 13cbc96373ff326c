"""Judges the results of another workflow run by the rules of the base branch.

The results carry the decision of the job that evaluated them, and its rules. Both are claims: a fork's job can write
anything. There is no checkout, so GitHub is asked for the rules of the base commit, which the author of the pull
request does not control: the configurations of the run's suites, and the templates that they name.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import yaml

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files import also_inside
from agenteval.core.records import dataclass, field, replace
from agenteval.core.shared_files import safe_directory
from agenteval.core.text import is_too_long
from agenteval.core.yaml import parse_yaml
from agenteval.gate.values import BaseNames
from agenteval.gate.verdict import decide_gate, quarantined, rules_of
from agenteval.github.client import GithubError
from agenteval.github.context import Context
from agenteval.github.publisher import Content, content_of
from agenteval.report.facts import facts, notes_of
from agenteval.report.markdown import render_summary
from agenteval.results.model import Results
from agenteval.results.verdict import Gate, Rules, Verdict
from agenteval.run.config import CONFIG_FILES
from agenteval.run.resolve_saved import resolve_saved

_ORDER: tuple[Verdict, ...] = ("passed", "unproven", "failed", "error")
_NAMED = 5


def _agreed(own: Gate, own_rules: Rules, claim: Gate | None) -> tuple[Gate, tuple[str, ...], str]:
    """Return the decision that both stages show, where the first one had other rules, and why it is worse than that.

    Args:
        own: the decision by the rules of the base branch.
        claim: the decision that the results contain; ``None`` if the job did not decide.
    """
    if claim is None:
        return own, (), ""
    warnings = tuple(_other_rules(own_rules, claim.rules)) if claim.rules is not None else ()
    if _badness(claim) > _badness(own):
        return claim, warnings, ""
    if own.exit_status and not claim.exit_status:
        why = "; ".join(warnings) or "its results do not support its decision"
        return own, (), f"the job that evaluated this commit ended green ({claim.verdict}): {why}"
    return own, warnings, ""


def _badness(gate: Gate) -> tuple[bool, int]:
    return (gate.exit_status != 0, _ORDER.index(gate.verdict))


def _other_rules(own: Rules, claim: Rules) -> Iterator[str]:
    if set(own.fail_on) != set(claim.fail_on):
        ours, theirs = (", ".join(rules.fail_on) or "none" for rules in (own, claim))
        yield f"it failed on {theirs}, and the base branch fails on {ours}; give both workflows the same `fail-on`"
    if own.max_error_rate != claim.max_error_rate:
        theirs, ours = (f"{rules.max_error_rate:g}" for rules in (claim, own))
        yield f"its `max_error_rate` was {theirs}, and that of the base branch is {ours}"
    if extra := sorted(set(claim.quarantine) - set(own.quarantine)):
        more = f" and {len(extra) - _NAMED} more" if len(extra) > _NAMED else ""
        yield f"it did not count {', '.join(extra[:_NAMED])}{more}, which the base branch has not quarantined"


# The other keys are not needed for a decision, and may name variables that only the first stage has.
_KEYS = ("gate", "templates")
_MOST_FILES = 100
_NOT_FOUND = 404
# A text in quotes in a template may be the name of a file to include.
_INCLUDED = re.compile(r"""["']([\w./-]{1,200}\.\w{1,10})["']""")


@contextmanager
def _base_copy(read: Callable[[str], str], suites: Iterable[str], here: str, config: Path | None) -> Iterator[None]:
    """Change to a directory with the rules of a commit, inside the block.

    Args:
        read: reads a file of the commit; raises ``GithubError`` with the status 404 if it does not exist.
        here: the working directory in the repository.
        config: the configuration that the workflow names, relative to the working directory.
    """
    with (
        tempfile.TemporaryDirectory(prefix="agenteval-base-", dir=safe_directory()) as folder,
        also_inside(Path(folder)),
    ):
        root = Path(folder).resolve()
        # Marks the root of the repository.
        (root / ".git").mkdir()
        copy = _Copy(read, root)
        working = _inside(here or ".")
        (root / working).mkdir(parents=True, exist_ok=True)
        known = [path for path in map(_or_nothing, suites) if path is not None]
        for directory in dict.fromkeys(parent for path in (working / "_", *known) for parent in path.parents):
            for name in CONFIG_FILES:
                copy.configuration(directory / name)
        for path in known:
            # Only the place of a suite counts. Something else can have its path.
            with contextlib.suppress(OSError):
                copy.write(path, "") if not (root / path).exists() else None
        if config is not None:
            copy.configuration(_inside(str(working / config)))
        with contextlib.chdir(root / working):
            yield


@dataclass
class _Copy:
    read: Callable[[str], str]
    root: Path
    _asked: set[PurePosixPath] = field(default_factory=set)

    def configuration(self, path: PurePosixPath) -> None:
        """Copy the rules in a configuration, with the templates that it names, if it exists."""
        text = self._text(path)
        if text is None:
            return
        # Variables are replaced when the copy is read.
        data = parse_yaml(text, str(path), self.root / path.parent, environment={}, unset=[]).data
        rules = {key: data[key] for key in _KEYS if key in data} if isinstance(data, dict) else {}
        self.write(path, yaml.safe_dump(rules, allow_unicode=True))
        templates = rules.get("templates")
        for name in templates.values() if isinstance(templates, dict) else ():
            self._template(path.parent / str(name))

    def _template(self, named: PurePosixPath) -> None:
        """Copy a template and the files that it includes, as far as they exist."""
        path = _or_nothing(str(named))
        text = None if path is None else self._text(path)
        if path is None or text is None:
            return
        self.write(path, text)
        for name in dict.fromkeys(_INCLUDED.findall(text)):
            self._template(path.parent / name)

    def _text(self, path: PurePosixPath) -> str | None:
        if path in self._asked:
            return None
        self._asked.add(path)
        if len(self._asked) > _MOST_FILES:
            raise ConfigError(
                Problem(f"the rules of the run consist of more than {_MOST_FILES} files", kind=Kind.GITHUB)
            )
        try:
            return self.read(str(path))
        except GithubError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def write(self, path: PurePosixPath, text: str) -> None:
        """Write a file of the copy."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _or_nothing(name: str) -> PurePosixPath | None:
    """Return a path in the repository; ``None`` if no file of it can have the name."""
    try:
        return _inside(name)
    except AgentEvalError:
        return None


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(posixpath.normpath(name))
    is_plain = not path.is_absolute() and not {"..", ".git"} & set(path.parts) and name.isprintable()
    if not is_plain or is_too_long(name):
        raise ConfigError(Problem(f"{name[:200]!r} is not a path in the repository", kind=Kind.GITHUB))
    return path


def judge(results: Results, context: Context, read: Callable[[str], str], name: str) -> tuple[Content, str]:
    """Return the texts of results, and why they contradict the job that evaluated; empty if they do not.

    Args:
        context: what the workflow says about the judgement. Links point only to its repository.
    """
    settings = context.inputs.settings_of_reports()
    suites = [suite.path for suite in results.suites]
    with _base_copy(read, suites, context.inputs.working_directory, settings.config):
        spec = resolve_saved(results, settings, context.environment)
        policy = spec.gate.knowing(_base_names(results))
        # The rules in the results are only a claim.
        rules = rules_of(policy, quarantined(results, policy))
        gate, warnings, contradiction = _agreed(decide_gate(results, policy), rules, results.gate)
        judged = results.model_copy(update={"gate": gate.model_copy(update={"rules": rules})})
        said = filter(None, (contradiction, *warnings, *notes_of(results)))
        report = facts(judged, gate, said, presentation=spec.presentation)
        content = content_of(report, context.options, name=name)
        if spec.presentation.summary_template is not None:
            content = replace(content, own_summary=render_summary(report))
    return content, contradiction


def _base_names(results: Results) -> BaseNames:
    """Return id and name in the base commit of the cases that the change renamed, as the results tell them."""
    renamed = {item.after: item.before for item in results.run.integrity if item.kind == "renamed"}
    names = {case.id: renamed.get(case.id) for _, case in results.cases()}
    return {current: (base, base.rpartition("::")[2]) for current, base in names.items() if base}
