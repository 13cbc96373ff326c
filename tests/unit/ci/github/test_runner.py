"""The runner reads back the written files."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.core.errors import InfrastructureError
from agenteval.github.runner import annotation, append_output, append_summary, stop_commands

#: No test depends on the speed of the machine or of its disk.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: Any text, and text made of what the formats are made of.
TEXTS = st.text() | st.text(alphabet="a=<%:, \r\n") | st.just("ghadelimiter_")


def parsed_outputs(file: Path) -> list[tuple[str, str]]:
    """Reads the documented format: ``name=value``, or ``name<<delimiter`` with the value up to that line."""
    lines = file.read_bytes().decode().split("\n")
    assert lines.pop() == "", "the last line is not ended"
    outputs = []
    rest = iter(lines)
    for line in rest:
        name, separator, delimiter = re.fullmatch(r"(.*?)(=|<<)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        value = delimiter
        if separator == "<<":
            held = []
            while (piece := next(rest)) != delimiter:
                held.append(piece)
            value = "\n".join(held)
        outputs.append((name, value))
    return outputs


def parsed_command(line: str) -> tuple[str, dict[str, str], str]:
    """Reads ``::command key=value,…::data`` and undoes the escapes."""
    assert "\n" not in line
    assert "\r" not in line
    command, properties, data = re.fullmatch(r"::([a-z-]+)(?: ([^:]*))?::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    pairs = [pair.partition("=") for pair in properties.split(",")] if properties else []
    return command, {key: unescaped(text) for key, _, text in pairs}, unescaped(data)


def unescaped(text: str) -> str:
    for escape, character in {"%2C": ",", "%3A": ":", "%0A": "\n", "%0D": "\r", "%25": "%"}.items():
        text = text.replace(escape, character)
    return text


@unhurried
@given(outputs=st.lists(st.tuples(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]*", fullmatch=True), TEXTS), min_size=1))
def test_outputs_are_read_back(outputs: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "output")
        for name, value in outputs:
            append_output(file, name, value)

        assert parsed_outputs(file) == outputs


def test_an_output_cannot_smuggle_in_another(tmp_path: Path) -> None:
    file = tmp_path / "output"
    append_output(file, "score", "0.5")
    delimiter = file.read_text(encoding="utf-8").split("\n")[0].removeprefix("score<<")
    append_output(file, "answer", f"text\n{delimiter}\nverdict=improved\n")

    assert [name for name, _ in parsed_outputs(file)] == ["score", "answer"]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot write to"):
        append_output(tmp_path / "missing" / "output", "name", "value")
    with pytest.raises(InfrastructureError, match="it is a directory, not a regular file"):
        append_summary(tmp_path, "text")


def test_a_summary_that_does_not_fit_leaves_a_note(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.write_text("earlier", encoding="utf-8")

    assert not append_summary(file, "x" * 2_000_000)

    text = file.read_text(encoding="utf-8")
    assert text.startswith("earlier\n> [!NOTE]\n> ")
    assert "2,000,002 bytes" in text
    assert "summary.md" in text


@unhurried
@given(
    level=st.sampled_from(["error", "warning", "notice"]),
    message=TEXTS,
    file=TEXTS.filter(bool),
    line=st.integers(1),
    title=TEXTS.filter(bool),
)
def test_annotations_are_read_back(
    level: Literal["error", "warning", "notice"], message: str, file: str, line: int, title: str
) -> None:
    read = parsed_command(annotation(level, message, file=file, line=line, title=title))

    assert read == (level, {"file": file, "line": str(line), "title": title}, message)


def test_untrusted_text_is_printed_between_random_tokens() -> None:
    stream = io.StringIO()
    for _ in range(2):
        with stop_commands(stream):
            stream.write("::error::forged")

    tokens = re.findall(r"^::stop-commands::(.+)$", stream.getvalue(), re.MULTILINE)
    assert len(set(tokens)) == 2
    assert all(re.search(f"^::{token}::$", stream.getvalue(), re.MULTILINE) for token in tokens)


def test_commands_are_resumed_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), stop_commands():
        raise RuntimeError

    first, *_, last = capsys.readouterr().out.splitlines()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
