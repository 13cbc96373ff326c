"""Compares the licences of all packages in ``requirements/runtime.lock`` with ``requirements/licences.toml``.

A package names its licence by an SPDX expression, else by a short text, else by classifiers (PEP 639 and earlier).
Packages of other platforms are not installed here, so they are not checked.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import cast

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
LOCK, RULES = REQUIREMENTS / "runtime.lock", REQUIREMENTS / "licences.toml"

_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==", re.MULTILINE)
_LONGEST_NAME = 60
# Licence names of packages without an SPDX expression, and the SPDX identifiers.
_SPDX: Mapping[str, str] = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Freely Distributable": "MIT",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass(frozen=True)
class Rules:
    """The content of ``licences.toml``.

    Args:
        allowed: allowed SPDX identifiers.
        packages: reviewed packages and the licence in their metadata; empty if the metadata has none.
    """

    allowed: frozenset[str]
    packages: Mapping[str, str]


def read_rules(path: Path = RULES) -> Rules:
    """Read the rules of a file; every exception needs a reason."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    if silent := [name for name, entry in data["packages"].items() if not entry["reason"].strip()]:
        raise ValueError(f"no reason for {', '.join(silent)}")
    return Rules(
        frozenset(data["allowed"]), {name: entry.get("says", "") for name, entry in data["packages"].items()}
    )


def locked_packages(path: Path = LOCK) -> list[str]:
    """Return the package names in a lock file."""
    return list(dict.fromkeys(match["name"] for match in _LOCKED.finditer(path.read_text(encoding="utf-8"))))


def licence_of(package: Message) -> str | None:
    """Return the licence in the metadata as an SPDX expression; ``None`` if it is unknown.

    Args:
        package: the core metadata.
    """
    expression = package.get("License-Expression")
    if expression:
        return str(expression)
    short = str(package.get("License") or "").strip()
    if short and len(short) <= _LONGEST_NAME and "\n" not in short:
        return _SPDX.get(short, short)
    listed = package.get_all("Classifier", [])
    said = [_SPDX[name] for item in listed if (name := item.rpartition(" :: ")[2]) in _SPDX]
    return " AND ".join(dict.fromkeys(said)) or None


def is_allowed(expression: str, allowed: Iterable[str]) -> bool:
    """Return whether the allowed licences satisfy an SPDX expression: all parts of ``AND``, one of ``OR``."""
    names = frozenset(allowed)
    parts = re.split(r"\s+AND\s+", expression.replace("(", " ").replace(")", " ").strip())
    return all(any(name.strip() in names for name in re.split(r"\s+OR\s+", part)) for part in parts)


def problems(names: Iterable[str], rules: Rules) -> Iterator[str]:
    """Return the problems: licences that are not allowed or unknown, and unnecessary exceptions."""
    for name in names:
        try:
            said = licence_of(cast("Message", metadata(name)))
        except PackageNotFoundError:
            continue
        is_fine = said is not None and is_allowed(said, rules.allowed)
        if name in rules.packages:
            if is_fine:
                yield f"{name}: {said} is allowed, so delete its entry"
            elif (said or "") != rules.packages[name]:
                yield f"{name}: the licence in its metadata is now {said!r}; review it again"
        elif said is None:
            yield f"{name}: does not name its licence; review it and add an entry"
        elif not is_fine:
            yield f"{name}: {said} is not allowed"


def main() -> int:
    """Print the problems; the status is 1 if there are any."""
    names, rules = locked_packages(), read_rules()
    found = list(problems(names, rules))
    found += [f"{name}: is no longer in {LOCK.name}" for name in rules.packages if name not in names]
    print("\n".join(found) or f"{len(names)} packages; every licence is allowed or reviewed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
