"""``agenteval init``: writes a suite, a configuration, a workflow and a small agent, and adds to ``.gitignore``."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agenteval.core.confine import run_confined
from agenteval.core.errors import ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.files import LARGEST_TEXT, read_regular
from agenteval.core.records import dataclass
from agenteval.core.text import repository_of
from agenteval.core.writing import make_directory, remove_file, write_file, write_new_file
from agenteval.run.config import CONFIG_FILES
from agenteval.suite.agents import KINDS, AgentKind
from agenteval.suite.formats.registry import discover, format_of, formats

_GITIGNORE = ".gitignore"


def _missing(patterns: Iterable[str], directory: Path, root: Path) -> list[str]:
    above = [folder for folder in directory.parents if folder.is_relative_to(root)]
    # A slash at the beginning means the directory of the file.
    lines = [line.removeprefix("/") for line in _lines(directory)]
    lines += [line for folder in above for line in _lines(folder)]
    present = {form for line in lines for form in _forms(line)}
    return [pattern for pattern in patterns if pattern not in present]


def _with_patterns(content: bytes, patterns: Iterable[str]) -> bytes:
    # New lines have the end of the others.
    end = b"\r\n" if b"\r\n" in content else b"\n"
    complete = content if not content or content.endswith(b"\n") else content + end
    return complete + b"".join(pattern.encode() + end for pattern in patterns)


def _read_gitignore(directory: Path) -> bytes:
    try:
        return read_regular(directory / _GITIGNORE, limit=LARGEST_TEXT)
    except FileNotFoundError:
        return b""


def _lines(directory: Path) -> Sequence[str]:
    return [line.strip() for line in _read_gitignore(directory).decode("utf-8", "replace").splitlines()]


def _forms(line: str) -> Iterable[str]:
    name = line.removeprefix("**/")
    yield from (name, f"{name.removesuffix('/')}/")


# What the container lacks: Node, and the services of the machine.
_NEEDS_MACHINE = re.compile(rb"^[^#\n]*(\b(node|npm|npx)\b|localhost|127\.0\.0\.1)", re.MULTILINE)
_TEMPLATE = Path(__file__).parent / "starters" / "workflow.yml"
#: The default branch of a new repository, and the likely one where git does not tell.
USUAL_BRANCH = "main"
_REPORT = "agenteval-report/"
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_GIT_TIMEOUT_S = 10


@dataclass(frozen=True)
class _Place:
    directory: Path
    root: Path
    is_in_repository: bool

    @classmethod
    def of(cls, directory: Path) -> _Place:
        here = directory.resolve()
        try:
            root = repository_of(here)
        except OSError:
            # No directory can have this path.
            root = None
        return cls(here, root or here, root is not None)

    @property
    def path(self) -> str:
        return "" if self.directory == self.root else self.directory.relative_to(self.root).as_posix()


def _workflow_name(place: _Place) -> str:
    label = re.sub(r"[^\w.-]+", "-", place.path).strip("-.")
    return f".github/workflows/{'-'.join(filter(None, ('agenteval', label)))}.yml"


def _workflow(place: _Place, branch: str, *, native: bool) -> bytes:
    if "${{" in place.path or "\\" in place.path or not place.path.isprintable() or place.path != place.path.strip():
        why = "it contains ${{, a backslash, a control character, or a space at an end"
        message = f"no workflow can name the directory {place.path!r}: {why}; rename it"
        raise ConfigError(Problem(f"{message}; nothing was written", kind=Kind.FILE))
    # Of the characters with a meaning here, the name of a branch can have these.
    pattern = _scalar(re.sub(r"[+!]", r"\\\g<0>", branch))
    text = _TEMPLATE.read_text(encoding="utf-8").replace(f"branches: [{USUAL_BRANCH}]", f"branches: [{pattern}]")
    if native:
        before, _, rest = text.partition("      # The action's container")
        text = f"{before}      {rest[rest.index('# Suites are found') :]}".replace(
            "agenteval-action@v1", "agenteval-action/native@v1"
        )
    if place.path:
        step = "        with:\n          runs:"
        folder = f"        with:\n          working-directory: {_scalar(place.path)}\n          runs:"
        text = text.replace("name: agenteval\n", f"name: {_scalar(f'agenteval {place.path}')}\n", 1)
        text = text.replace(step, folder).replace(
            f"path: {_REPORT}", f"path: {_scalar(_pattern(f'{place.path}/{_REPORT}'))}"
        )
    return text.encode("utf-8", "replace")


def default_branch(directory: Path) -> str:
    """Return the default branch of a directory's repository; empty if git does not tell.

    It is that of the remote, the only branch there is, or ``main`` or ``master`` beside others. Without a repository,
    it is the one that git would make.
    """
    place = _Place.of(directory)
    if not place.is_in_repository:
        return _git(Path.cwd(), "config", "init.defaultBranch") or USUAL_BRANCH
    remote = _git(place.root, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    # A new repository has no branch but the one that its first commit will make.
    names = {_git(place.root, "symbolic-ref", "--quiet", "--short", "HEAD")}
    for reference in _git(place.root, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes").split():
        names.add(re.sub(r"^refs/(heads|remotes/[^/]+)/", "", reference))
    names -= {"", "HEAD"}
    usual = names & {"main", "master"}
    return next(iter(names if len(names) == 1 else usual)) if 1 in {len(names), len(usual)} else ""


def _git(directory: Path, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    try:
        done = run_confined([program, *arguments], directory, timeout_s=_GIT_TIMEOUT_S)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _pattern(path: str) -> str:
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", path)
    return f"./{escaped}" if escaped.startswith(("!", "#", "~")) else escaped


def _scalar(text: str) -> str:
    return text if all(map(_PLAIN.fullmatch, text.split(" "))) else json.dumps(text, ensure_ascii=False)


_STARTERS = Path(__file__).parent / "starters"
_AGENT = "agent.py"
_TRACES = "traces"
_WORSEN = "sed -i.bak 's/FORGETFUL = False/FORGETFUL = True/' agent.py"
_BEFORE = "agenteval-report/before"
# What runs leave in the directory.
_IGNORED = ("agenteval-report/", "agenteval-again/", ".agenteval-cache/", "__pycache__/")


def starter_formats() -> Mapping[str, Path]:
    """List the formats that have a starting point, with the folder of its files."""
    return {item.name: item.starter for item in formats() if item.starter is not None}


def starter_agents() -> Mapping[str, AgentKind]:
    """List the agent kinds that have a starting point."""
    return {kind.name: kind for kind in KINDS if _definition(kind.name).is_file()}


def _definition(agent_kind: str) -> Path:
    return _STARTERS / "agents" / f"{agent_kind}.yaml"


#: A file to write: a directory, the name in it, and the content.
NewFile = tuple[Path, str, bytes]


@dataclass(frozen=True)
class Starter:
    """What to write to a directory, so that its agent is evaluated.

    Attributes:
        kept: files that are there already, and that nothing replaces.
    """

    directory: Path
    suite_format: str
    agent_kind: str
    branch: str
    files: tuple[NewFile, ...]
    kept: tuple[Path, ...]


def starter_for(directory: Path, suite_format: str | None, agent_kind: str, branch: str) -> Starter:
    """Return the starter for a directory: what its suite, its settings and a workflow need and what is missing.

    Args:
        suite_format: by default the format of the suite that is there.
    """
    there = {path: format_of(path) for path in discover(directory)} if os.path.lexists(directory) else {}
    chosen = suite_format or next(filter(None, there.values()), next(iter(starter_formats())))
    found = [path for path, name in there.items() if name == chosen]
    settings = [path for name in CONFIG_FILES if os.path.lexists(path := directory / name)]
    suite, kind = starter_formats()[chosen], starter_agents()[agent_kind]
    files = {} if found else {path.relative_to(suite).as_posix(): path.read_bytes() for path in _files(suite)}
    if not settings:
        files["agenteval.yaml"] = (_STARTERS / "settings.yaml").read_bytes() + _definition(agent_kind).read_bytes()
        files |= {_AGENT: (_STARTERS / _AGENT).read_bytes()} if kind.is_local else {}
    place = _Place.of(directory)
    root = Path(os.path.relpath(place.root)) if place.path else directory
    native = any(_NEEDS_MACHINE.search(read_regular(path, limit=LARGEST_TEXT)) for path in settings if path.is_file())
    workflow = (root, _workflow_name(place), _workflow(place, branch, native=native))
    new = (*((directory, name, content) for name, content in files.items()), workflow)
    return Starter(directory, chosen, agent_kind, branch, new, (*found, *settings))


def write_starter(starter: Starter) -> Sequence[str]:
    """Write a starter, and create its directory if it does not exist; return what was done.

    The workflow is written to the root of the repository. Patterns that are missing in ``.gitignore`` are added.
    """
    directory, files = starter.directory, starter.files
    _refuse_existing(files)
    written: list[NewFile] = []
    try:
        make_directory(directory)
        for file in files:
            # A file created since the check is not overwritten either.
            write_new_file(*file)
            written.append(file)
        ignored = _ignore(directory, starter.agent_kind)
    except (OSError, InfrastructureError) as error:
        for folder, name, _ in written:
            remove_file(folder, name)
        at = _paths(files)[len(written)] if len(written) < len(files) else directory / _GITIGNORE
        why = f"cannot write {at}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise InfrastructureError(f"{why}; nothing was written") from None
    return (*(f"kept {path}" for path in starter.kept), *(f"wrote {path}" for path in _paths(files)), *ignored)


def _paths(files: Sequence[NewFile]) -> list[Path]:
    return [folder / name for folder, name, _ in files]


def _ignore(directory: Path, agent_kind: str) -> Sequence[str]:
    place = _Place.of(directory)
    wanted = _IGNORED if starter_agents()[agent_kind].is_local else _IGNORED[:-1]
    missing = _missing(wanted, place.directory, place.root)
    if not missing:
        return ()
    write_file(directory, _GITIGNORE, _with_patterns(_read_gitignore(directory), missing))
    return (f"added {' '.join(missing)} to {directory / _GITIGNORE}",)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def next_steps(starter: Starter) -> Sequence[str]:
    """Return the next commands for a starter, one per line, with comments after ``#``."""
    directory = starter.directory
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    is_demo = starter_agents()[starter.agent_kind].is_local and not starter.kept
    steps.append(_commit_command(starter) if is_demo else "agenteval validate")
    if not starter.kept and (starter_formats()[starter.suite_format] / _TRACES).is_dir():
        steps.append(f"agenteval run --traces {_TRACES}   # scores the recorded traces; no agent is called")
    if not is_demo:
        is_named = any(path.name in CONFIG_FILES for path in starter.kept)
        note = "" if is_named else "   # once agenteval.yaml names your agent"
        return [*steps, f"{_commit_command(starter)}{note}", "agenteval run"]
    return [
        *steps,
        f"agenteval run --out {_BEFORE}",
        f"{_WORSEN} && agenteval run --baseline {_BEFORE}   # a worse agent: the gate fails, see comment.md",
    ]


def _commit_command(starter: Starter) -> str:
    place = _Place.of(starter.directory)
    new = f"git init --quiet --initial-branch {shlex.quote(starter.branch)} && "
    written = [*starter.kept, *_paths(starter.files), starter.directory / _GITIGNORE]
    names = shlex.join(os.path.relpath(path, starter.directory) for path in written if path.is_file())
    begin = "" if place.is_in_repository else new
    return f"{begin}git add {names} && git commit --quiet --message 'Evaluate the agent'"


def _refuse_existing(files: Sequence[NewFile]) -> None:
    existing = [path for path in _paths(files) if os.path.lexists(path)]
    if existing:
        listed = ", ".join(map(str, existing))
        verb = "exists" if len(existing) == 1 else "exist"
        fix = "nothing was written; name another directory: agenteval init DIRECTORY"
        raise ConfigError(Problem(f"{listed} {verb} already; {fix}", kind=Kind.FILE))
    folders = dict.fromkeys(folder for path in _paths(files) for folder in reversed(path.parents))
    blocked = [str(folder) for folder in folders if _blocks_directory(folder)]
    if blocked:
        raise ConfigError(Problem(f"not a directory: {', '.join(blocked)}; nothing was written", kind=Kind.FILE))


def _blocks_directory(path: Path) -> bool:
    try:
        return os.path.lexists(path) and not path.is_dir()
    except OSError:
        return True
