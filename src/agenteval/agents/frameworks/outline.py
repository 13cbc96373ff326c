"""What Python files define, read without running them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.files import below, read_regular
from agenteval.core.records import dataclass

# Bytes; a parsed module takes up to a thousand times its size in memory.
LARGEST_MODULE = 400_000


@dataclass(frozen=True)
class Definition:
    """A definition in a module.

    Attributes:
        line: 1-based.
        origins: full dotted names: for a variable the called name, for a function its decorators,
            for a class its bases. Names that cannot be traced to an import are omitted.
    """

    name: str
    line: int
    origins: tuple[str, ...]


@dataclass(frozen=True)
class Outline:
    """The module level of a file.

    Attributes:
        name: the import name, relative to ``src/`` if that exists and is not a package, else to the repository.
        file: path in the repository.
        variables: variables assigned from a call; the last assignment counts.
        functions: including asynchronous ones.
    """

    name: str
    file: str
    imports: frozenset[str]
    variables: tuple[Definition, ...]
    functions: tuple[Definition, ...]
    classes: tuple[Definition, ...]


def outline(source: bytes, module: str, file: str) -> Outline:
    """Return the outline of a file.

    Args:
        source: the bytes of the file; its encoding declaration applies.
        module: the dotted name it is imported by, from which relative imports start.
        file: path in the repository.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not valid Python of this version, or too large.
    """
    if len(source) > LARGEST_MODULE:
        raise ValueError(f"it has more than {LARGEST_MODULE:,} bytes")
    with warnings.catch_warnings():
        # Warnings about invalid escapes in user code are not reported.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    statements = list(_module_level(tree.body))
    is_package = Path(file).name == "__init__.py"
    imports = dict(_imports(statements, module if is_package else module.rpartition(".")[0]))
    own = {
        node.name: f"{module}.{node.name}"
        for node in statements
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    # Imports take precedence: a definition of the same name is usually the fallback for a failed import.
    names = {**own, **{bound: full for bound, (full, _) in imports.items()}}
    return Outline(
        name=module,
        file=file,
        imports=frozenset(imported for _, imported in imports.values()),
        variables=tuple(_variables(statements, names)),
        functions=tuple(
            _definition(node, node.decorator_list, names)
            for node in statements
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        classes=tuple(_definition(node, node.bases, names) for node in statements if isinstance(node, ast.ClassDef)),
    )


def _module_level(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, so not those under ``if __name__ == "__main__"``."""
    for node in statements:
        yield node
        if isinstance(node, ast.If):
            if not _is_main(node.test):
                yield from _module_level(node.body)
            yield from _module_level(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _module_level(node.body)
            for handler in node.handlers:
                yield from _module_level(handler.body)
            yield from _module_level((*node.orelse, *node.finalbody))
        elif isinstance(node, ast.With):
            yield from _module_level(node.body)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(side, ast.Name) and side.id == "__name__" for side in (test.left, *test.comparators)
    )


def _imports(statements: Iterable[ast.stmt], package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in statements:
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.asname:
                    yield item.asname, (item.name, item.name)
                else:
                    yield item.name.partition(".")[0], (item.name.partition(".")[0], item.name)
        elif isinstance(node, ast.ImportFrom):
            source = _import_source(node, package)
            for item in node.names if source is not None else ():
                full = f"{source}.{item.name}"
                yield item.asname or item.name, (full, full)


def _import_source(node: ast.ImportFrom, package: str) -> str | None:
    """Return the full name of the module after ``from``; ``None`` if it is outside the top-level package."""
    if node.level == 0:
        return node.module
    parts = package.split(".") if package else []
    if node.level > len(parts):
        return None
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _variables(statements: Iterable[ast.stmt], names: Mapping[str, str]) -> Iterator[Definition]:
    last: dict[str, Definition] = {}
    for node in statements:
        if isinstance(node, ast.Assign):
            targets: Sequence[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if isinstance(node.value, ast.Call):
            for target in targets:
                if isinstance(target, ast.Name):
                    last[target.id] = Definition(target.id, node.lineno, _full_names([node.value], names))
    yield from last.values()


def _definition(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, origins: Iterable[ast.expr], names: Mapping[str, str]
) -> Definition:
    return Definition(node.name, node.lineno, _full_names(origins, names))


def _full_names(expressions: Iterable[ast.expr], names: Mapping[str, str]) -> tuple[str, ...]:
    found = (_full_name(expression, names) for expression in expressions)
    return tuple(name for name in found if name is not None)


def _full_name(expression: ast.expr, names: Mapping[str, str]) -> str | None:
    """Return ``a.b.C`` for ``C``, ``C[…]``, ``C(…)`` or ``x.C``, resolving the first name."""
    if isinstance(expression, ast.Call):
        expression = expression.func
    if isinstance(expression, ast.Subscript):
        expression = expression.value
    attributes: list[str] = []
    while isinstance(expression, ast.Attribute):
        attributes.append(expression.attr)
        expression = expression.value
        if isinstance(expression, ast.Subscript):
            expression = expression.value
    if not isinstance(expression, ast.Name) or expression.id not in names:
        return None
    return ".".join([names[expression.id], *reversed(attributes)])


# Bytes; larger files are assumed to be generated.
MAX_FILE = 1_000_000

_SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "build", "dist", "venv", "__pycache__"})
# Files that run a program when they are imported.
_SKIPPED_FILES = frozenset({"setup.py", "__main__.py"})


class Modules:
    """The modules of a repository, parsed on request.

    Attributes:
        packages: the names of the packages and modules at the top level of the repository.
        warnings: the files that could not be parsed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unread = list(_python_files(root))
        self.packages = frozenset(module for _, module in self._unread if "." not in module)
        self.read: list[Outline] = []
        self.warnings: list[str] = []

    def read_mentioning(self, names: Iterable[str]) -> None:
        """Parse the files in which one of the names occurs."""
        wanted = [name.encode() for name in names]
        self._unread = [(path, module) for path, module in self._unread if not self._is_done(path, module, wanted)]
        self.read.sort(key=lambda found: found.file)

    def _is_done(self, path: Path, module: str, wanted: Iterable[bytes]) -> bool:
        try:
            if path.stat().st_size > MAX_FILE:
                return self._skip(path, f"larger than {MAX_FILE // 1_000_000} MB")
            source = read_regular(path, limit=MAX_FILE)
            if not any(name in source for name in wanted):
                return False
            found = outline(source, module, self._shown(path))
        except OSError as error:
            return self._skip(path, f"cannot be read: {error.strerror}")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return self._skip(path, f"not valid Python: {error}")
        self.read.append(found)
        return True

    def _skip(self, path: Path, why: str) -> bool:
        self.warnings.append(f"{self._shown(path)}: {why}; left out of the search for agents and tools")
        return True

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def _python_files(root: Path) -> Iterator[tuple[Path, str]]:
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
