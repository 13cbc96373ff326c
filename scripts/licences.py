"""Compares the licences of everything in ``requirements/runtime.lock`` with ``requirements/licences.toml``.

A package says its licence by an SPDX expression, else by a short text, else by classifiers (PEP 639, and what came
before it). Packages of other platforms are not installed here and so left to them.
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
# How packages that have no SPDX expression call what they mean.
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
    """What ``licences.toml`` says.

    Args:
        allowed: SPDX identifiers that need no further look.
        packages: what each package that was looked at says of its licence; empty where it says nothing.
    """

    allowed: frozenset[str]
    packages: Mapping[str, str]


def read_rules(path: Path = RULES) -> Rules:
    """The rules of a file; every exception has a reason."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    if silent := [name for name, entry in data["packages"].items() if not entry["reason"].strip()]:
        raise ValueError(f"no reason is given for {', '.join(silent)}")
    return Rules(
        frozenset(data["allowed"]), {name: entry.get("says", "") for name, entry in data["packages"].items()}
    )


def locked_packages(path: Path = LOCK) -> list[str]:
    """The names in a lock file."""
    return list(dict.fromkeys(match["name"] for match in _LOCKED.finditer(path.read_text(encoding="utf-8"))))


def licence_of(package: Message) -> str | None:
    """The licence that metadata names, as an SPDX expression; ``None`` where that cannot be told.

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
    """Whether an SPDX expression holds with the allowed licences: all parts of ``AND``, one of ``OR``."""
    names = frozenset(allowed)
    parts = re.split(r"\s+AND\s+", expression.replace("(", " ").replace(")", " ").strip())
    return all(any(name.strip() in names for name in re.split(r"\s+OR\s+", part)) for part in parts)


def problems(names: Iterable[str], rules: Rules) -> Iterator[str]:
    """What is not allowed, or not known, or excused without need."""
    for name in names:
        try:
            said = licence_of(cast("Message", metadata(name)))
        except PackageNotFoundError:
            continue
        is_fine = said is not None and is_allowed(said, rules.allowed)
        if name in rules.packages:
            if is_fine:
                yield f"{name}: {said} is allowed, so it needs no entry of its own"
            elif (said or "") != rules.packages[name]:
                yield f"{name}: says {said!r} of its licence now; look again"
        elif said is None:
            yield f"{name}: does not name its licence; look, and give it an entry"
        elif not is_fine:
            yield f"{name}: {said} is not allowed"


def main() -> int:
    """Print what is wrong; the status is 1 if anything is."""
    names, rules = locked_packages(), read_rules()
    found = list(problems(names, rules))
    found += [f"{name}: is not in {LOCK.name} any more" for name in rules.packages if name not in names]
    print("\n".join(found) or f"{len(names)} packages, every licence is allowed or has a reason")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
