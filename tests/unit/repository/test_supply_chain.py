"""Everything that is installed has a hash and a licence that was looked at."""

from __future__ import annotations

import re
from email.message import Message
from pathlib import Path

import pytest
from scripts import audit
from scripts.licences import REQUIREMENTS, Rules, is_allowed, licence_of, locked_packages, problems, read_rules

LOCKS = sorted(REQUIREMENTS.glob("*.lock"))


def package(*classifiers: str, **fields: str) -> Message:
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    for classifier in classifiers:
        message["Classifier"] = classifier
    return message


def test_shipped_packages_have_a_reviewed_licence() -> None:
    assert list(problems(locked_packages(), read_rules())) == []


def test_no_exception_outlives_its_package() -> None:
    assert set(read_rules().packages) <= set(locked_packages())


def test_a_licence_that_is_not_allowed_is_reported() -> None:
    rules = read_rules()
    without = Rules(
        rules.allowed - {"MIT"}, {name: said for name, said in rules.packages.items() if name != "certifi"}
    )
    found = list(problems(["certifi", "anyio", "attrs", "no-such-package"], without))
    assert found == ["certifi: MPL-2.0 is not allowed", "anyio: MIT is not allowed", "attrs: MIT is not allowed"]


def test_a_licence_exception_ends_when_the_metadata_changes() -> None:
    rules = Rules(frozenset({"MIT"}), {"certifi": "MIT-0", "anyio": ""})
    assert list(problems(["certifi", "anyio"], rules)) == [
        "certifi: the licence in its metadata is now 'MPL-2.0'; review it again",
        "anyio: MIT is allowed, so delete its entry",
    ]


def test_every_exception_has_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "licences.toml"
    file.write_text('allowed = []\n[packages]\na = { licence = "GPL-3.0-only", reason = " " }\n', encoding="utf-8")
    with pytest.raises(ValueError, match="no reason for a"):
        read_rules(file)


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        (package(License_Expression="MIT OR Apache-2.0", License="x"), "MIT OR Apache-2.0"),
        (package(License="Apache License, Version 2.0"), "Apache-2.0"),
        (package(License="GPL-3.0"), "GPL-3.0"),
        (package("License :: OSI Approved :: MIT License", License="Copyright\nmuch text"), "MIT"),
        (package("License :: OSI Approved :: BSD License"), None),
        (package(), None),
    ],
)
def test_where_the_licence_is_said(metadata: Message, licence: str | None) -> None:
    assert licence_of(metadata) == licence


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT AND ISC", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
    ],
)
def test_expressions(expression: str, allowed: bool) -> None:
    assert is_allowed(expression, {"MIT", "ISC"}) is allowed


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_everything_that_is_locked_has_hashes(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
    pinned = [entry for entry in entries if not entry.startswith("#")]
    assert pinned
    assert [entry.splitlines()[0] for entry in pinned if "--hash=sha256:" not in entry] == []
    assert all(re.match(r"[\w.-]+==\S+", entry) for entry in pinned)


def test_the_audit_asks_no_package_index() -> None:
    asked = audit.command("pip-audit", LOCKS)
    assert asked[asked.index("--vulnerability-service") + 1] == "osv"
    assert "--disable-pip" in asked
    assert asked.count("--requirement") == len(LOCKS)
