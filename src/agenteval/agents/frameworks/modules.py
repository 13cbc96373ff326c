"""The Python modules of a repository: their files, import names and definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agenteval.agents.frameworks.outline import Outline, outline
from agenteval.core.files.reading import below, read_regular

# Bytes; larger files are assumed to be generated.
MAX_FILE = 1_000_000

_SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "build", "dist", "venv", "__pycache__"})
# Files that run a program when they are imported.
_SKIPPED_FILES = frozenset({"setup.py", "__main__.py"})


@dataclass(frozen=True)
class Module:
    """A file and what it defines.

    Attributes:
        name: the import name, relative to ``src/`` if that exists and is not a package, else to the repository.
        file: relative to the repository.
        outline: its module level.
    """

    name: str
    file: str
    outline: Outline


class Modules:
    """The modules of a repository, parsed on request.

    Attributes:
        read: the parsed modules, ordered by file.
        warnings: the files that could not be parsed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unread = list(_python_files(root))
        self.read: list[Module] = []
        self.warnings: list[str] = []

    def read_mentioning(self, names: Iterable[str]) -> None:
        """Parse the files in which one of the names occurs."""
        wanted = [name.encode() for name in names]
        self._unread = [(path, module) for path, module in self._unread if not self._is_done(path, module, wanted)]
        self.read.sort(key=lambda found: found.file)

    def _is_done(self, path: Path, module: str, wanted: Iterable[bytes]) -> bool:
        """Return whether a file is done: it has been parsed or cannot be parsed."""
        try:
            if path.stat().st_size > MAX_FILE:
                return self._skip(path, f"larger than {MAX_FILE // 1_000_000} MB")
            source = read_regular(path, limit=MAX_FILE)
            if not any(name in source for name in wanted):
                return False
            found = outline(source, module, is_package=path.name == "__init__.py")
        except OSError as error:
            return self._skip(path, f"cannot be read: {error.strerror}")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return self._skip(path, f"not valid Python: {error}")
        self.read.append(Module(module, self._shown(path), found))
        return True

    def _skip(self, path: Path, why: str) -> bool:
        self.warnings.append(f"{self._shown(path)}: {why}; left out of the search for agents and tools")
        return True

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def _python_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every importable file of the repository with its module name."""
    source = root / "src"
    has_source = source.is_dir() and not (source / "__init__.py").exists()
    for folder, folders, files in below(root):
        folders[:] = [name for name in folders if not _is_skipped(Path(folder, name))]
        for name in files:
            path = Path(folder, name)
            if path.suffix == ".py" and name not in _SKIPPED_FILES:
                start = source if has_source and path.is_relative_to(source) else root
                parts = path.relative_to(start).with_suffix("").parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                # A dot in a directory name would separate packages.
                if parts and not any("." in part for part in parts):
                    yield path, ".".join(parts)


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()
