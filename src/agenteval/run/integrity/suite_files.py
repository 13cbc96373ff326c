"""Suite files with other expected answers: all of them are written, or none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.documents.document import dotted
from agenteval.core.documents.edit import NotReplaceableError, Replacements
from agenteval.core.documents.toml.edit import with_texts as with_toml_texts
from agenteval.core.documents.yaml.edit import with_texts as with_yaml_texts
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import LARGEST_TEXT, read_regular
from agenteval.core.files.writing import write_bytes
from agenteval.core.paths import place_of
from agenteval.run.integrity.answers import Answers, places_by_file

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class ChangedFile:
    """A file before and after a change.

    Attributes:
        path: the file on this machine.
        name: its name in messages.
        before: its content.
        after: its new content.
    """

    path: Path
    name: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (_LINE.findall(text) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, f"a/{self.name}", f"b/{self.name}")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def changed_files(answers: Answers) -> list[ChangedFile]:
    """Return the suite files with new expected answers; nothing is written.

    Raises:
        ConfigError: an expected answer cannot be replaced; the error contains every problem.
    """
    files, problems = [], []
    for name, texts in places_by_file(answers):
        try:
            files.append(_changed(name, texts))
        except NotReplaceableError as error:
            problems.append(Problem(error.why, file=name, line=error.line, path=dotted(error.keys), kind=Kind.FILE))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return files


def _changed(name: str, texts: Replacements) -> ChangedFile:
    path = place_of(name)
    if path is None:
        raise ConfigError(
            Problem("is not a file in this repository, so it cannot be updated", file=name, kind=Kind.FILE)
        )
    try:
        # With all its bytes: a line break of Windows stays one.
        before = read_regular(path, limit=LARGEST_TEXT).decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(Problem(f"cannot be read: {why}", file=name, kind=Kind.FILE)) from None
    is_toml = path.suffix.lower() == ".toml"
    after = with_toml_texts(before, texts) if is_toml else with_yaml_texts(before, name, texts)
    return ChangedFile(path, name, before, after)


@contextmanager
def written(files: Sequence[ChangedFile]) -> Iterator[None]:
    """Write the files; an error in the block, or while they are written, restores all of them.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    done: list[ChangedFile] = []
    try:
        for file in files:
            done.append(file)
            _write(file.path, file.after)
        yield
    except BaseException:
        for file in done:
            _write(file.path, file.before)
        raise


def _write(path: Path, text: str) -> None:
    mode = path.stat().st_mode
    write_bytes(path.parent, path.name, text.encode("utf-8"))
    path.chmod(mode)
