"""No framework: a loop over the cases, results written as JSON Lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks.speed.drivers.common import (
    arguments,
    ask_all,
    overlap_scores,
    read_cases,
    reply,
    write_outcome,
)


def main() -> None:
    """Run the cases and write ``results.jsonl``."""
    kind, url = arguments()
    cases = read_cases()
    if kind == "overlap":
        rows = [overlap_scores(case.answer, case.expected) for case in cases]
        _write(rows)
        write_outcome(len(rows), len(rows), rows)
        return
    answers = asyncio.run(ask_all(cases, url)) if url else [reply(case.question) for case in cases]
    passed = [answer == case.expected for answer, case in zip(answers, cases, strict=True)]
    _write({"answer": answer, "passed": is_same} for answer, is_same in zip(answers, passed, strict=True))
    write_outcome(len(passed), sum(passed))


def _write(rows: Iterable[object]) -> None:
    with Path("results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
