"""Writes what all scenarios print and write to a directory, to compare two states of the code.

Usage: ``python -m tests.scenarios.reference DIRECTORY [TEXT…]``, with texts that names must contain; then
``diff -r BEFORE AFTER``. Times, ids, addresses and titles of schemas are replaced, as they differ in each run.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.scenarios.scenario import Seen, load_scenarios
from tests.scenarios.stage import opened_stage, play

_REPORTS = ("results.json", "comment.md", "summary.md", "report.html", "junit.xml", "badge.json", "findings.json")
_TIMES = re.compile(r"_(ms|s|at)$|^(ms|time|cpu|wall|id|run_id|session|seed|platform|python)$|latency|duration")
_VARYING = (
    (re.compile(r"scenario-[a-z0-9_]+"), "FOLDER"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{7}\b(?=[^-\w])"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?)?"), "DATE"),
    (re.compile(r"[<~]?\d+(\.\d+)?( |&nbsp;)?(ms|s|min)\b( [+\u2212-]\d+%)?"), "TIME"),
    (re.compile(r"\d+(\.\d+)?/s\b"), "RATE"),
    (re.compile(r"\b[0-9a-f]{6}&#8203;[0-9a-f]{6}\b"), "ID"),
    (re.compile(r"\n+(?=\n)"), ""),
    # How slow cases are, and which are the slowest.
    (re.compile(r"(?m)^.*(slowest cases|latency|<dt>Time|\btime\b.*TIME).*\n"), ""),
    (re.compile(r"(?m)^<li><span data-row=.*<b>TIME</b></li>\n"), ""),
    (re.compile(r'(time|timestamp)="[^"]*"'), r'\1=""'),
    (re.compile(r'"(\w+_ms|seconds|\w+_s)":[\d.]+'), r'"\1":0'),
    (re.compile(r"<svg.*?</svg>", re.DOTALL), "<svg/>"),
    # A row of the page's table of cases: its ninth value is a time.
    (re.compile(r'(?m)^(\["[^"]*"(?:,(?:"[^"]*"|[^,"\[\]]*)){7},)\d+,'), r"\1TIME,"),
)


def steady(text: str) -> str:
    """Return a text without what differs in each run."""
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return text


def _steady_json(value: Any) -> Any:
    if isinstance(value, dict):
        if {"baseline", "current", "change"} <= value.keys():
            return sorted(value)
        return {
            steady(key): None if _TIMES.search(key) and not isinstance(item, dict | list) else _steady_json(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_steady_json(item) for item in value]
    return steady(value) if isinstance(value, str) else value


def write_outputs(seen: Seen, folder: Path) -> None:
    """Write exit status, streams and reports of one step."""
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"{seen.ended.status}\n", encoding="utf-8")
    (folder / "out").write_text(steady(seen.ended.out), encoding="utf-8")
    (folder / "err").write_text(steady(seen.ended.err), encoding="utf-8")
    for name in _REPORTS:
        file = seen.reports / name
        if not file.exists():
            continue
        text = file.read_text(encoding="utf-8")
        if name.endswith(".json"):
            text = json.dumps(_steady_json(json.loads(text)), indent=1, ensure_ascii=False)
        (folder / name).write_text(steady(text), encoding="utf-8")


def main(directory: str, *texts: str) -> None:
    """Play the scenarios whose names contain one of the texts, all by default."""
    with opened_stage() as stage:
        for scenario in load_scenarios():
            if texts and not any(text in scenario.id for text in texts):
                continue
            for number, (_, seen) in enumerate(play(scenario, stage)):
                write_outputs(seen, Path(directory, scenario.id, str(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
