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
from agenteval.suite.agents import KINDS, AgentKind
from agenteval.suite.formats.registry import formats

#: The name of the file.
GITIGNORE = ".gitignore"


def missing_patterns(patterns: Iterable[str], directory: Path, root: Path) -> Sequence[str]:
    """Return the patterns that no ``.gitignore`` from a directory up to the root of its repository has."""
    above = [folder for folder in directory.parents if folder.is_relative_to(root)]
    # A slash at the beginning means the directory of the file.
    lines = [line.removeprefix("/") for line in _lines(directory)]
    lines += [line for folder in above for line in _lines(folder)]
    present = {form for line in lines for form in _forms(line)}
    return [pattern for pattern in patterns if pattern not in present]


def with_patterns(content: bytes, patterns: Iterable[str]) -> bytes:
    """Return the content of a file with further lines at its end, which have the line end of the others."""
    end = b"\r\n" if b"\r\n" in content else b"\n"
    complete = content if not content or content.endswith(b"\n") else content + end
    return complete + b"".join(pattern.encode() + end for pattern in patterns)


def read_gitignore(directory: Path) -> bytes:
    """Return the content of the file in a directory; empty if it does not exist."""
    try:
        return read_regular(directory / GITIGNORE, limit=LARGEST_TEXT)
    except FileNotFoundError:
        return b""


def _lines(directory: Path) -> Sequence[str]:
    return [line.strip() for line in read_gitignore(directory).decode("utf-8", "replace").splitlines()]


def _forms(line: str) -> Iterable[str]:
    name = line.removeprefix("**/")
    yield from (name, f"{name.removesuffix('/')}/")


_TEMPLATE = Path(__file__).parent / "starters" / "workflow.yml"
_FOLDER = ".github/workflows"
_BRANCH = "main"
_REPORT = "agenteval-report/"
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_GIT_TIMEOUT_S = 10


@dataclass(frozen=True)
class SuitePlace:
    """A directory with a suite, and the root of its repository.

    Attributes:
        directory: the directory, absolute and without links; it need not exist.
        root: the root of the repository; the directory itself if it is in none.
    """

    directory: Path
    root: Path
    is_in_repository: bool

    @classmethod
    def of(cls, directory: Path) -> SuitePlace:
        """Return the place of a directory."""
        here = directory.resolve()
        try:
            root = repository_of(here)
        except OSError:
            # No directory can have this path.
            root = None
        return cls(here, root or here, root is not None)

    @property
    def path(self) -> str:
        """The directory relative to the root; empty for the root."""
        return "" if self.directory == self.root else self.directory.relative_to(self.root).as_posix()


def workflow_name(place: SuitePlace) -> str:
    """Return the path of the workflow relative to the root, which names the directory."""
    label = re.sub(r"[^\w.-]+", "-", place.path).strip("-.")
    return f"{_FOLDER}/{'-'.join(filter(None, ('agenteval', label)))}.yml"


def workflow(place: SuitePlace) -> bytes:
    """Return the text of the workflow."""
    if "${{" in place.path or "\\" in place.path or not place.path.isprintable() or place.path != place.path.strip():
        why = "it contains ${{, a backslash, a control character, or a space at an end"
        message = f"no workflow can name the directory {place.path!r}: {why}; rename it"
        raise ConfigError(Problem(f"{message}; nothing was written", kind=Kind.FILE))
    text = _TEMPLATE.read_text(encoding="utf-8").replace(f"branches: [{_BRANCH}]", f"branches: [{_branch(place)}]")
    if place.path:
        step = "        with:\n          runs:"
        folder = f"        with:\n          working-directory: {_scalar(place.path)}\n          runs:"
        text = text.replace("name: agenteval\n", f"name: {_scalar(f'agenteval {place.path}')}\n", 1)
        text = text.replace(step, folder).replace(
            f"path: {_REPORT}", f"path: {_scalar(_pattern(f'{place.path}/{_REPORT}'))}"
        )
    return text.encode("utf-8", "replace")


def _branch(place: SuitePlace) -> str:
    if not place.is_in_repository:
        return _BRANCH
    remote = _reference(place.root, "refs/remotes/origin/HEAD").removeprefix("origin/")
    branch = remote or ("master" if _reference(place.root, "HEAD") == "master" else _BRANCH)
    # Of the characters with a meaning here, the name of a branch can have these.
    return _scalar(re.sub(r"[+!]", r"\\\g<0>", branch))


def _reference(root: Path, name: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    try:
        done = run_confined([program, "symbolic-ref", "--quiet", "--short", name], root, timeout_s=_GIT_TIMEOUT_S)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _pattern(path: str) -> str:
    """Return the pattern of actions/upload-artifact that matches one path."""
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
_IGNORED = ("agenteval-report/", ".agenteval-cache/")
_IGNORED_OF_PYTHON = ("__pycache__/",)


def starter_formats() -> Mapping[str, Path]:
    """List the formats that have a starting point, with the folder of its files."""
    return {item.name: item.starter for item in formats() if item.starter is not None}


def starter_agents() -> Mapping[str, AgentKind]:
    """List the agent kinds that have a starting point."""
    return {kind.name: kind for kind in KINDS if _definition(kind.name).is_file()}


def _definition(agent_kind: str) -> Path:
    return _STARTERS / "agents" / f"{agent_kind}.yaml"


@dataclass(frozen=True)
class NewFile:
    """A file to write."""

    directory: Path
    name: str
    content: bytes

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.directory / self.name


def write_starter(directory: Path, suite_format: str, agent_kind: str) -> Sequence[str]:
    """Write a starter to a directory, and create the directory if it does not exist.

    The workflow is written to the root of the repository. Patterns that are missing in ``.gitignore`` are added.
    """
    files = starter_files(directory, suite_format, agent_kind)
    _refuse_existing(files)
    written: list[NewFile] = []
    try:
        make_directory(directory)
        for file in files:
            # A file created since the check is not overwritten either.
            write_new_file(file.directory, file.name, file.content)
            written.append(file)
        ignored = _ignore(directory, agent_kind)
    except (OSError, InfrastructureError) as error:
        for file in written:
            remove_file(file.directory, file.name)
        at = files[len(written)].path if len(written) < len(files) else directory / GITIGNORE
        why = f"cannot write {at}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise InfrastructureError(f"{why}; nothing was written") from None
    return (*(f"wrote {file.path}" for file in files), *ignored)


def starter_files(directory: Path, suite_format: str, agent_kind: str) -> Sequence[NewFile]:
    """Return the files of a starter."""
    suite = starter_formats()[suite_format]
    kind = starter_agents()[agent_kind]
    files = {
        **{path.relative_to(suite).as_posix(): path.read_bytes() for path in _files(suite)},
        "agenteval.yaml": (_STARTERS / "settings.yaml").read_bytes() + _definition(agent_kind).read_bytes(),
        **({_AGENT: (_STARTERS / _AGENT).read_bytes()} if kind.is_local else {}),
    }
    place = SuitePlace.of(directory)
    workflow_file = NewFile(_shown_root(directory, place), workflow_name(place), workflow(place))
    return (*(NewFile(directory, name, content) for name, content in files.items()), workflow_file)


def _shown_root(directory: Path, place: SuitePlace) -> Path:
    if not place.path:
        return directory
    return Path(os.path.relpath(place.root))


def _ignore(directory: Path, agent_kind: str) -> Sequence[str]:
    place = SuitePlace.of(directory)
    wanted = _IGNORED + (_IGNORED_OF_PYTHON if starter_agents()[agent_kind].is_local else ())
    missing = missing_patterns(wanted, place.directory, place.root)
    if not missing:
        return ()
    write_file(directory, GITIGNORE, with_patterns(read_gitignore(directory), missing))
    return (f"added {' '.join(missing)} to {directory / GITIGNORE}",)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def next_steps(directory: Path, suite_format: str, agent_kind: str) -> Sequence[str]:
    """Return the next commands for a starter, one per line, with comments after ``#``."""
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    is_local = starter_agents()[agent_kind].is_local
    steps.append(_commit_command(directory) if is_local else "agenteval validate")
    if (starter_formats()[suite_format] / _TRACES).is_dir():
        steps.append(f"agenteval run --traces {_TRACES}   # scores the recorded traces; no agent is called")
    if not is_local:
        return [*steps, "agenteval run   # once agenteval.yaml has the address of your agent"]
    return [
        *steps,
        f"agenteval run --out {_BEFORE}",
        f"{_WORSEN} && agenteval run --baseline {_BEFORE}   # a worse agent: the gate fails, see comment.md",
    ]


def _commit_command(directory: Path) -> str:
    place = SuitePlace.of(directory)
    begin = "" if place.is_in_repository else "git init --quiet && "
    root = os.path.relpath(place.root, place.directory)
    above = f" {shlex.quote(f'{root}/{workflow_name(place)}')}" if place.path else ""
    return f"{begin}git add --all .{above} && git commit --quiet --message 'Evaluate the agent'"


def _refuse_existing(files: Sequence[NewFile]) -> None:
    existing = [file.path for file in files if os.path.lexists(file.path)]
    if existing:
        listed = ", ".join(map(str, existing))
        verb = "exists" if len(existing) == 1 else "exist"
        fix = "nothing was written; name another directory: agenteval init DIRECTORY"
        raise ConfigError(Problem(f"{listed} {verb} already; {fix}", kind=Kind.FILE))
    folders = dict.fromkeys(folder for file in files for folder in reversed(file.path.parents))
    blocked = [str(folder) for folder in folders if _blocks_directory(folder)]
    if blocked:
        raise ConfigError(Problem(f"not a directory: {', '.join(blocked)}; nothing was written", kind=Kind.FILE))


def _blocks_directory(path: Path) -> bool:
    try:
        return os.path.lexists(path) and not path.is_dir()
    except OSError:
        return True
