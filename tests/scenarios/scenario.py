"""Scenarios: files, scripted replies and commands, and what people must see of them.

A scenario knows nothing of the inside: the command line runs in an empty directory, and what it printed and wrote is
read. ``README.md`` beside this file describes the format.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.scenarios.outlets import disagreements
from tests.support import Ended

FOLDER = Path(__file__).parent
#: Ten times as fast, if libyaml is there.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OF_FILE = frozenset({"why", "expected_to_fail"})
_OF_STEP = frozenset(
    {"files", "remove", "replace", "env", "event", "agent", "base", "judge", "github", "before", "run", "expect"}
)
_EXPECTED = frozenset(
    {"exit", "verdict", "state", "cases", "scores", "says", "silent", "absent", "calls", "answers", "problems"}
)
#: Where sentences can stand, besides the two streams: files of the report directory.
_OUTLETS = {
    "comment": "comment.md",
    "summary": "summary.md",
    "junit": "junit.xml",
    "page": "report.html",
    "results": "results.json",
}
#: And what the agent, the judge and GitHub were asked.
_REQUESTS = {"requests": "agent", "prompts": "judge", "github": "github"}
_KNOWN_OUTLETS = frozenset({"terminal", "errors", "outputs", *_OUTLETS, *_REQUESTS})


@dataclass(frozen=True)
class Scenario:
    """One story: steps that are played one after the other in one directory.

    Attributes:
        id: area and name, with the name of the row in brackets.
        steps: what is given and expected in each step, by the keys of the format.
        fails_because: why the program does not do this yet; empty if it does.
    """

    id: str
    steps: Sequence[Mapping[str, Any]]
    fails_because: str


def load_scenarios(folder: Path = FOLDER) -> list[Scenario]:
    """Return all scenarios below a folder, those of one file in its order.

    Raises:
        ValueError: a file has another form; the error names the file and the row.
    """
    found: list[Scenario] = []
    for file in sorted(folder.rglob("*.yaml")):
        try:
            found += _of_file(file)
        except (ValueError, yaml.YAMLError, AttributeError, TypeError) as error:
            raise ValueError(f"{file}: {error}") from error
    return found


def _of_file(file: Path) -> Iterator[Scenario]:
    name = str(file.relative_to(FOLDER).with_suffix(""))
    story = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    rows = story.pop("rows", {"": {}})
    for row, changes in rows.items():
        told = _merged(story, changes or {})
        first, *later = told.pop("steps", [{}])
        step = {key: value for key, value in told.items() if key not in _OF_FILE}
        steps = [_merged(step, first), *later]
        if wrong := list(_mistakes(told, steps)):
            raise ValueError(f"row {row!r}: {'; '.join(wrong)}")
        yield Scenario(f"{name}[{row}]" if row != "" else name, steps, told.get("expected_to_fail", ""))


def _mistakes(told: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not told.get("why"):
        yield "no `why`"
    if not steps[-1].get("expect"):
        yield "the last step expects nothing"
    for number, step in enumerate(steps, 1):
        expected = step.get("expect", {})
        outlets = {**(expected.get("says") or {}), **(expected.get("silent") or {})}
        unknown = {
            "key": step.keys() - _OF_STEP,
            "key of expect": expected.keys() - _EXPECTED,
            # Other outlets are paths of files, which have an extension or a directory.
            "outlet": {outlet for outlet in outlets if not re.search(r"[./]", outlet)} - _KNOWN_OUTLETS,
        }
        yield from (f"step {number}: unknown {what} {sorted(names)}" for what, names in unknown.items() if names)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with changes; mappings in it are merged too, and nothing as a value removes a key."""
    found = dict(base)
    for key, value in changes.items():
        before = found.get(key)
        found[key] = _merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return {key: value for key, value in found.items() if key not in changes or value is not None}


@dataclass(frozen=True)
class Seen:
    """What a step left.

    Attributes:
        ended: exit status and output of the command.
        folder: the directory in which it ran.
        reports: the directory of its reports.
        asked: the requests to `agent`, `judge` and `github`.
    """

    ended: Ended
    folder: Path
    reports: Path
    asked: Mapping[str, Sequence[str]]

    @property
    def results(self) -> dict[str, Any]:
        """The document results.json."""
        found: dict[str, Any] = json.loads((self.reports / "results.json").read_text(encoding="utf-8"))
        return found

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The cases of all suites."""
        return [case for suite in self.results["suites"] for case in suite["cases"]]

    def text(self, outlet: str) -> str:
        """What stands in an outlet: a stream, the requests, a report, or any file of the directory."""
        if outlet in _REQUESTS:
            return "\n".join(self.asked[_REQUESTS[outlet]])
        if outlet in {"terminal", "errors"}:
            return self.ended.out if outlet == "terminal" else self.ended.err
        if outlet == "outputs":
            return re.sub(r"(?ms)^(\S+)<<(\S+)\n(.*?)\n\2$", r"\1=\3", self.text("runner/output"))
        file = self.reports / _OUTLETS[outlet] if outlet in _OUTLETS else self.folder / outlet
        return file.read_text(encoding="utf-8") if file.exists() else ""


def check(expected: Mapping[str, Any], seen: Seen) -> None:
    """Raise an AssertionError with all differences and the whole output, if a step left anything but the expected."""
    differences = [*_differences(expected, seen), *disagreements(seen), *_commands(seen)]
    if differences:
        raise AssertionError("\n".join([*differences, "--- terminal", seen.ended.out, "--- errors", seen.ended.err]))


def _differences(told: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    expected = {key: value for key, value in told.items() if value is not None}
    if expected.get("exit", seen.ended.status) != seen.ended.status:
        yield f"exit status {seen.ended.status}, expected {expected['exit']}"
    if expected.keys() & {"verdict", "state", "cases", "scores", "answers", "problems"}:
        if not (seen.reports / "results.json").exists():
            yield "no results.json"
            return
        yield from _other_results(expected, seen)
    for outlet, texts in expected.get("says", {}).items():
        said = _folded(seen.text(outlet))
        shown = html.unescape(said)
        yield from (f"{outlet} does not say: {text}" for text in _texts(texts) if text not in said + shown)
    for outlet, texts in expected.get("silent", {}).items():
        said = _folded(seen.text(outlet))
        yield from (f"{outlet} says: {text}" for text in _texts(texts) if text in said)
    for who, number in expected.get("calls", {}).items():
        if len(seen.asked[who]) != number:
            yield f"{len(seen.asked[who])} calls of the {who}, expected {number}"
    yield from (f"{path} exists" for path in expected.get("absent", ()) if (seen.folder / path).exists())


def _commands(seen: Seen) -> Iterator[str]:
    """Yield the lines that a runner of GitHub would obey, or a terminal would not print; a job's own are fine."""
    for line in f"{seen.ended.out}\n{seen.ended.err}".splitlines():
        is_command = re.match(r"\s*::\S", line) or "##[" in line
        if "\x1b" in line or (is_command and not (seen.folder / "runner").exists()):
            yield f"commands: {line!r}"


def _texts(texts: str | Sequence[str] | None) -> list[str]:
    return [_folded(str(text)) for text in ([texts] if isinstance(texts, str) else texts or ())]


def _folded(text: str) -> str:
    return " ".join(text.split())


def _other_results(expected: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    verdict = seen.results["gate"]["verdict"]
    if expected.get("verdict", verdict) != verdict:
        yield f"verdict {verdict}, expected {expected['verdict']}"
    state = (seen.results.get("comparison") or {}).get("state")
    if expected.get("state", state) != state:
        yield f"state {state}, expected {expected['state']}"
    cases = {case["name"]: case for case in seen.cases}
    for name, status in expected.get("cases", {}).items():
        found = cases.get(str(name), {}).get("status")
        if found != status:
            yield f"case {name}: {found}, expected {status}"
    for name, metrics in expected.get("scores", {}).items():
        scores = _scores(cases.get(str(name), {}))
        for metric, score in metrics.items():
            found = scores.get(metric, "absent")
            if not _is_near(found, score):
                yield f"case {name}: {metric} is {found} among {sorted(scores)}, expected {score}"
    yield from _other_answers(expected, cases)


def _other_answers(expected: Mapping[str, Any], cases: Mapping[str, Any]) -> Iterator[str]:
    turns = {name: case["iterations"][0]["turns"] for name, case in cases.items() if case.get("iterations")}
    for name, answer in expected.get("answers", {}).items():
        given = [turn["response"] for turn in turns.get(str(name), [])]
        if given[-1:] != [answer]:
            yield f"case {name}: answers {given}, expected {answer!r}"
    for name, problem in expected.get("problems", {}).items():
        given = [turn["error"] for turn in turns.get(str(name), [])]
        if not any(problem in (error or "") for error in given):
            yield f"case {name}: errors {given}, expected {problem!r}"


def _scores(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of the first iteration, those of a later turn before those of an earlier one.

    A metric without a score has its status instead.
    """
    turns = case["iterations"][0]["turns"] if case.get("iterations") else []
    return {
        score["id"]: score["score"] if score["status"] == "scored" else score["status"]
        for turn in turns
        for score in turn["scores"]
    }


def _is_near(found: Any, expected: Any) -> bool:
    if isinstance(found, float | int) and isinstance(expected, float | int):
        return abs(found - expected) <= 0.0005
    return bool(found == expected)
