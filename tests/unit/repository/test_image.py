"""The Dockerfile agrees with the package that it installs."""

from __future__ import annotations

import re
import tomllib

from tests.support import ROOT

from agenteval.core.version import __version__

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names_in(file: str) -> set[str]:
    """The names of requirements, as packages are compared."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"[A-Za-z0-9][\w.-]*?(?===|\s|\[|$)", line) for line in lines)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


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
    assert unused <= names_in("runtime.lock")
    assert not unused & own
