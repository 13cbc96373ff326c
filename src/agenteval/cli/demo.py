"""``agenteval demo``: an example agent, a change that makes it worse, and what the gate says; offline."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import TableElement
from rich.table import Table

from agenteval.core.errors import InfrastructureError
from agenteval.core.escape import terminal
from agenteval.core.records import dataclass
from agenteval.results.store import read_results

# Longer words are continued on the next line.
_LONGEST = 40


class TableOfWholeWords(TableElement):
    """Rich's table, whose columns are as wide as their longest word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    words = " ".join(map(str, column.cells)).split()
                    column.overflow = "fold"
                    column.min_width = min(_LONGEST, max(map(cell_len, words), default=1))
            yield part


_WIDTH = 76
_HIDDEN = re.compile("[\u200b\u2060]|&#8203;|<!--.*?-->", re.DOTALL)
_FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>.*?</details>", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>")
_BREAK = re.compile(r"<br\s*/?>")
# Rich fills lines with spaces, and puts several empty lines around a table.
_ENDS = re.compile(r" +$", re.MULTILINE)
_GAPS = re.compile(r"\n{3,}")
_TAG = re.compile(r"</?[a-z][^<>]*>")


def comment_view(markdown: str) -> list[str]:
    """Return the lines of a comment; of a folded part only its title."""
    from rich.markdown import Markdown

    class DemoComment(Markdown):
        elements: ClassVar = {**Markdown.elements, "table_open": TableOfWholeWords}

    text = _HIDDEN.sub("", markdown)
    text = _FOLDED.sub(r"▸ \1", text)
    text = _SUMMARY.sub(r"▾ \1\n", text)
    text = _TAG.sub("", _BREAK.sub(" · ", text))
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(DemoComment(text))
    return _GAPS.sub("\n\n", _ENDS.sub("", captured.get())).strip("\n").splitlines()


_PACKAGE = Path(__file__).parents[1]
_EXAMPLE = Path("examples", "quickstart")
_AGENT = "agent.py"
_OLD = 'question = standalone([*earlier, request["input"]], known_names())'
_NEW = 'question = request["input"]'
_BEFORE = "agenteval-report/before"
_AFTER = "agenteval-report"
_TIMEOUT_S = 120
# What they set belongs to another repository or run.
_FOREIGN = ("GIT_", "GITHUB_", "INPUT_", "QUICKSTART_", "RUNNER_")
_GIT = (
    *("-c", "user.name=agenteval", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", "init.defaultBranch=main"),
)


def demo(show: Callable[[str], None]) -> None:
    """Evaluate an example agent before and after a change, in a new temporary directory that stays."""
    git = shutil.which("git")
    if git is None:
        raise InfrastructureError("git is missing: the demo keeps the agent before the change in a repository")
    try:
        directory = Path(tempfile.mkdtemp(prefix="agenteval-demo-"))
    except OSError as error:
        raise InfrastructureError(f"cannot create a temporary directory: {error.strerror}") from None
    try:
        _story(_Stage(directory, git), show)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def example_directory() -> Path:
    """Return the directory of the example: in the installed package, or beside ``src`` in a checkout."""
    for directory in (_PACKAGE / _EXAMPLE, _PACKAGE.parents[1] / _EXAMPLE):
        if (directory / _AGENT).is_file():
            return directory
    raise InfrastructureError(f"the example is missing: no {_EXAMPLE} in {_PACKAGE}; install agenteval again")


def _story(stage: _Stage, show: Callable[[str], None]) -> None:
    stage.set_up()
    show("1. An example agent answers the customers of a bicycle rental shop.")
    show("   It needs no model and no network.")
    show(f"   $ agenteval run --out {_BEFORE}")
    show(f"   {stage.run(0, '--out', _BEFORE)}")
    show("")
    show(f"2. Somebody simplifies {_AGENT}:")
    stage.change()
    show(f"   - {_OLD}")
    show(f"   + {_NEW}")
    show("")
    show("3. The gate runs both versions of the agent, as it does for a pull request:")
    show(f"   $ agenteval run --baseline {_BEFORE}")
    show(f"   {stage.run(1, '--baseline', _BEFORE, '--out', _AFTER)}")
    show("   exit status 1: the check fails; where it is required, the change cannot be merged")
    show("")
    show("4. A reviewer sees this comment on the pull request:")
    for line in comment_view((stage.directory / _AFTER / "comment.md").read_text(encoding="utf-8")):
        show(terminal(f"   {line}".rstrip()))
    show("")
    show(f"agent, suite and reports: {stage.directory}")
    show("next:")
    for command in _next_commands(stage.directory / _AFTER):
        show(f"  {command}")


@dataclass(frozen=True)
class _Stage:
    directory: Path
    git: str

    def set_up(self) -> None:
        left = shutil.ignore_patterns("__pycache__", "agenteval-report", ".agenteval-cache")
        try:
            shutil.copytree(
                example_directory(), self.directory, dirs_exist_ok=True, ignore=left, copy_function=shutil.copyfile
            )
            # The action's image runs agents as another user.
            self.directory.chmod(0o755)
        except (OSError, shutil.Error) as error:
            raise InfrastructureError(f"cannot copy the example: {error}") from None
        for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "Add an agent")):
            self._call([self.git, *_GIT, *arguments], 0)

    def change(self) -> None:
        file = self.directory / _AGENT
        text = file.read_text(encoding="utf-8")
        if text.count(_OLD) != 1:
            raise InfrastructureError(f"{file} has another line than the demo changes; install agenteval again")
        file.write_text(text.replace(_OLD, _NEW), encoding="utf-8")

    def run(self, expected: int, *options: str) -> str:
        """Run the suite with the real program; return the gate's verdict in one line."""
        # -P: the modules of the agent must not take the place of those that agenteval imports.
        self._call([sys.executable, "-P", "-m", "agenteval", "run", "--quiet", *options], expected)
        gate = read_results(self.directory / options[-1]).gate
        return terminal(f"{gate.verdict}: {gate.headline}") if gate else ""

    def _call(self, argv: Sequence[str], expected: int) -> None:
        try:
            done = subprocess.run(
                argv,
                cwd=self.directory,
                env=_own_environment(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfrastructureError(f"{_shown(argv)}: {error}") from None
        if done.returncode != expected:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            raise InfrastructureError(f"{_shown(argv)} ended with exit status {done.returncode}:\n{said}")


def _own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(_FOREIGN)}


def _shown(argv: Sequence[str]) -> str:
    return shlex.join([Path(argv[0]).name, *argv[1:]])


def _next_commands(report: Path) -> Sequence[str]:
    # `pipx run agenteval-action` installs no program that stays.
    program = "pipx run agenteval-action" if Path(sys.argv[0]).stem == "agenteval-action" else "agenteval"
    return (
        f"{program} open {shlex.quote(str(report))}",
        f"{program} explain proven   # any concept, metric or setting",
        f"{program} init   # a suite, a configuration and a workflow, in your repository",
    )
