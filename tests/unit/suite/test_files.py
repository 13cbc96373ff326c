"""The files and hashes of cases."""

from __future__ import annotations

import copy
import hashlib
import pickle
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from agenteval.core import runtime
from agenteval.core.errors import ConfigError
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import Case, FileRef, MetricConfig, Suite, Turn

PDF = b"%PDF-1.4\n"
OFFICE = b"PK\x03\x04"
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contents = {
        "notes.txt": b"Helmets are free.",
        "old.txt": "Öffnungszeiten".encode("cp1252"),
        "rules.pdf": PDF,
        "prices.xlsx": OFFICE,
        "prices.xls": OLD_OFFICE,
        "binary.txt": b"a\0b",
        "wide.txt": "Öffnungszeiten".encode("utf-16"),
        "odd.txt": b"\x81",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        if "." in name:
            raise ModuleNotFoundError(name)
        return None

    monkeypatch.setattr(runtime, "find_spec", find)


def load(folder: Path, *files: str, above: str = "") -> Suite:
    """A suite with one case that has these files; each is a mapping in one line."""
    lines = "".join(f"  - {file}\n" for file in files)
    path = folder / "agent.yaml"
    path.write_text(f"{above}test_cases:\n- input: hello\n  files:\n{lines}")
    return load_holodeck(path, "suites/agent.yaml")


def file(folder: Path, line: str, above: str = "") -> FileRef:
    (found,) = load(folder, line, above=above).cases[0].turns[0].files
    return found


def problems(folder: Path, *files: str, above: str = "") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, *files, above=above)
    return [str(problem).removeprefix("suites/agent.yaml:") for problem in caught.value.problems]


class TestRead:
    def test_a_path(self, folder: Path) -> None:
        found = file(folder, "{path: ./notes.txt, type: text, description: What we say}")
        assert found == FileRef(
            name="./notes.txt",
            kind="text",
            path=str(folder / "notes.txt"),
            description="What we say",
            digest=hashlib.sha256(b"Helmets are free.").hexdigest(),
        )

    def test_an_address(self, folder: Path) -> None:
        found = file(folder, "{url: 'https://me:secret@example.org/a.pdf?sig=secret', type: pdf, pages: [3, 1]}")
        assert found == FileRef(
            name="https://example.org/a.pdf",
            kind="pdf",
            url="https://me:secret@example.org/a.pdf?sig=secret",
            pages=(3, 1),
        )

    @pytest.mark.parametrize(
        ("written", "above", "cache", "seconds"),
        [
            ("", "", True, (30, 30)),
            (", cache: false", "", False, (30, 30)),
            ("", "execution: {download_timeout: 5, file_timeout: 7, cache_enabled: false}\n", False, (5, 7)),
            (", cache: true", "execution: {cache_enabled: false}\n", True, (30, 30)),
        ],
    )
    def test_limits(self, folder: Path, written: str, above: str, cache: bool, seconds: tuple[int, int]) -> None:
        found = file(folder, f"{{url: 'http://example.org', type: text{written}}}", above)
        assert (found.cache, (found.download_s, found.convert_s)) == (cache, seconds)

    def test_paths_start_beside_the_file_that_names_them(self, folder: Path) -> None:
        (folder / "data").mkdir()
        (folder / "data" / "near.csv").write_text("a;b")
        (folder / "data" / "cases.yaml").write_text("- input: a\n  files: [{path: near.csv, type: csv}]\n")
        (folder / "agent.yaml").write_text("test_cases_file: data/cases.yaml\n")
        (found,) = load_holodeck(folder / "agent.yaml", "agent.yaml").cases[0].turns[0].files
        assert (found.name, found.path) == ("near.csv", str(folder / "data" / "near.csv"))

    def test_another_encoding_is_warned_about_once(self, folder: Path) -> None:
        line = "{path: old.txt, type: text}"
        assert load(folder, "{path: wide.txt, type: text}").warnings == ()
        assert load(folder, line, line).warnings == (
            "suites/agent.yaml:4: test_cases[0].files[0]: old.txt is not UTF-8; it is read as Windows-1252",
        )

    def test_images_without_tesseract_are_a_warning(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        line = "{path: notes.txt, type: image}"
        monkeypatch.setenv("PATH", str(folder))
        assert load(folder, line, line).warnings == (
            "suites/agent.yaml:4: test_cases[0].files[0]: reading text in images needs tesseract, "
            "which is not installed: agents get only the path",
        )


class TestProblems:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("{path: ., type: text}", "path: . cannot be read: Is a directory"),
            ('{path: "a\\0b", type: text}', "path: 'a\\x00b' is no path: embedded null byte"),
            ("{path: binary.txt, type: text}", "path: binary.txt is not a text file"),
            ("{path: odd.txt, type: text}", "path: odd.txt is neither UTF-8 nor Windows-1252 text"),
            ("{path: notes.txt, type: pdf}", "path: notes.txt is no PDF file"),
            ("{path: notes.txt, type: word}", "path: notes.txt is no .docx file"),
            ("{path: prices.xls, type: powerpoint}", "path: prices.xls has the old binary format, or a password"),
            (
                "{path: prices.xls, type: excel, sheet: A}",
                "path: prices.xls: a sheet or range can be chosen in .xlsx",
            ),
            ("{path: rules.pdf, type: pdf, sheet: A}", "sheet: can be chosen in excel files, not in pdf"),
            (
                "{path: prices.xlsx, type: excel, range: all}",
                "range: 'all' is not a range of cells; write it like A1:E100",
            ),
            (
                "{url: 'ftp://example.org/a', type: text}",
                "url: 'ftp://example.org/a' is not an http:// or https:// address",
            ),
            ("{url: 'http://[::1', type: text}", "url: 'http://[::1' is not an http:// or https:// address"),
        ],
    )
    def test_names_the_key(self, folder: Path, line: str, said: str) -> None:
        (problem,) = problems(folder, line)
        assert problem.startswith(f"4: test_cases[0].files[0].{said}")

    @pytest.mark.usefixtures("nothing_installed")
    def test_the_extra_is_named_once(self, folder: Path) -> None:
        found = problems(folder, "{path: notes.txt, type: text}", *["{path: rules.pdf, type: pdf}"] * 2)
        assert found == [
            "5: test_cases[0].files[1].type: reading pdf files needs an extra that is not installed: "
            "pip install 'agenteval-action[files]'"
        ]


class TestFingerprint:
    FILE = FileRef(name="docs/a.pdf", kind="pdf", path="/here/docs/a.pdf", digest="1")

    def of(self, *files: FileRef) -> str:
        return Case(id="a", name="a", turns=(Turn(input="a", files=files),)).fingerprint

    @pytest.mark.parametrize(
        "change",
        [
            {"path": "/elsewhere/docs/a.pdf"},
            {"cache": False},
        ],
    )
    def test_same_question(self, change: dict[str, Any]) -> None:
        assert self.of(replace(self.FILE, **change)) == self.of(self.FILE)

    @pytest.mark.parametrize(
        "change",
        [
            {"digest": "2"},
            {"name": "docs/b.pdf"},
            {"pages": (1,)},
            {"url": "https://example.org/a.pdf"},
        ],
    )
    def test_another_question(self, change: dict[str, Any]) -> None:
        assert self.of(replace(self.FILE, **change)) != self.of(self.FILE)
        assert self.of(self.FILE) != self.of()


def case_of(text: str) -> Case:
    metric = MetricConfig(id="equality", type="equality", kind="match", options={"b": 1, "a": [2]})
    return Case(id=f"s.yaml::{text}", name=text, turns=(Turn(text, ground_truth="yes", metrics=(metric,)),))


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    case = case_of("one")
    before = case.fingerprint
    assert replace(case, name="another", line=3).fingerprint == before
    changed = replace(case, turns=case_of("two").turns)
    assert changed.fingerprint == case_of("two").fingerprint != before
    assert case.fingerprint == before


def test_a_fingerprint_is_no_part_of_the_value() -> None:
    asked, not_asked = case_of("one"), case_of("one")
    assert asked.fingerprint
    assert (asked, hash(asked.id), repr(asked)) == (not_asked, hash(not_asked.id), repr(not_asked))


def test_copies_and_pickles_keep_it() -> None:
    for case in (case_of("one"), case_of("one")):
        for again in (copy.copy(case), copy.deepcopy(case), pickle.loads(pickle.dumps(case))):
            assert (again, again.fingerprint) == (case, case_of("one").fingerprint)
        assert case.fingerprint == case_of("one").fingerprint
