"""The Dockerfile agrees with the package that it installs."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
from tests.support import ROOT, python_program

from agenteval.core.version import __version__

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names_in(file: str) -> set[str]:
    """The names of requirements, as packages are compared."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"[A-Za-z0-9][\w.-]*?(?===|\s|\[|$)", line) for line in lines)
    return {named(match[0]) for match in found if match}


def named(package: str) -> str:
    """The name of a package as it is compared."""
    return re.sub(r"[-_.]+", "-", package).lower()


def test_its_labels_say_what_is_in_it() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]+)"', DOCKERFILE))

    assert labels["version"] == __version__ == PROJECT["version"]
    assert labels["title"] == PROJECT["name"]
    assert labels["description"] == PROJECT["description"]
    assert labels["licenses"] == PROJECT["license"]


def test_its_program_is_started_without_a_shell_and_isolated() -> None:
    [entry] = re.findall(r"(?m)^ENTRYPOINT (.*)$", DOCKERFILE)

    assert entry == '["/opt/agenteval/bin/python", "-I", "-m", "agenteval", "action"]'


def test_omitted_packages_are_required_by_other_packages_only() -> None:
    unused = names_in("unused.txt")
    own = {re.split(r"[\[<>=;]", requirement)[0].strip().lower() for requirement in PROJECT["dependencies"]}

    assert unused
    # Tests run with them.
    assert unused - {"setuptools", "wheel"} <= names_in("dev.lock")
    assert not unused & names_in("runtime.lock")
    assert not unused & own


@pytest.mark.long
def test_nothing_imports_omitted_packages() -> None:
    """Every module of the locked packages that agenteval imports anywhere is imported without the omitted ones."""
    unused, locked = names_in("unused.txt"), names_in("runtime.lock")
    packages = {name: {named(item) for item in found} for name, found in packages_distributions().items()}
    modules = {name for name, found in packages.items() if found & unused}
    users = {name for name in imported_modules() if packages.get(name.partition(".")[0], set()) & locked}
    assert {"github", "pptx", "rich.markdown", "deepeval.metrics"} <= users
    program = f"import importlib, sys\nsys.modules.update(dict.fromkeys({sorted(modules)}))\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in sorted(users)
    )

    ended = python_program("-c", program, cwd=ROOT)

    assert (ended.returncode, ended.stderr) == (0, "")


def imported_modules() -> set[str]:
    """The modules that agenteval imports at any place, also inside functions."""
    found: set[str] = set()
    for file in (ROOT / "src" / "agenteval").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return found


def test_the_environment_does_not_grow() -> None:
    """The sizes of the packages of runtime.lock on Linux, without bytecode; record what is wanted in sizes.toml."""
    recorded = tomllib.loads((ROOT / "requirements" / "sizes.toml").read_text(encoding="utf-8"))["environment_mb"]

    found = {name: size / 1e6 for name, size in installed_sizes(names_in("runtime.lock")).items()}

    largest = sorted(found.items(), key=lambda item: -item[1])[:10]
    assert sum(found.values()) <= recorded * 1.05, largest


def installed_sizes(names: set[str]) -> dict[str, int]:
    """The bytes of the installed files of packages; those of other systems are not installed."""
    sizes = {}
    for package in distributions():
        if (name := named(package.name)) in names:
            paths = [Path(str(package.locate_file(file))) for file in package.files or () if file.suffix != ".pyc"]
            sizes[name] = sum(path.stat().st_size for path in paths if path.is_file())
    return sizes
