"""Writes and reads results.json."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import PydanticSerializationError

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_RESULTS, open_regular, read_regular
from agenteval.core.records import dataclass
from agenteval.core.runtime import gc_paused
from agenteval.results.case import CaseResult, CaseStatus, SuiteResult, clean_json
from agenteval.results.comparison import BaselineCase, BaselineRun
from agenteval.results.model import SCHEMA_VERSION, Results
from agenteval.results.rollup import total

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


@dataclass(frozen=True)
class Passed:
    """The essential data of a passed case; the agent's time over all turns and iterations is in seconds."""

    name: str
    seconds: float


class Archive:
    """Access to the full cases of results, in suite order; here, of results that contain them."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Yield every case of a suite."""
        return suite.cases

    def texts(self, suite: SuiteResult) -> Iterable[str]:
        """Yield every case of a suite as one line of JSON."""
        return (case.model_dump_json() for case in self.cases(suite))

    def findings(self, suite: SuiteResult) -> Iterable[tuple[CaseResult, float] | Passed]:
        """Yield the cases that did not pass, each with the agent's seconds, and the passed ones, in suite order."""
        for case in self.cases(suite):
            seconds = agent_seconds(case)
            yield Passed(case.name, seconds) if case.status == "passed" else (case, seconds)

    def baseline_cases(self, entry: BaselineRun) -> Iterable[Mapping[str, BaselineCase]]:
        """Yield the cases of an entry of the results' baseline by id, in batches."""
        return (entry.cases,)

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's time over all cases of a suite, in seconds."""
        return total([agent_seconds(case) for case in suite.cases])

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        return Counter(case.status for case in suite.cases)


IN_MEMORY: Final = Archive()


def in_full(results: Results, archive: Archive) -> Results:
    """Return results with every case and every entry of the baseline in full."""
    suites = [suite.model_copy(update={"cases": list(archive.cases(suite))}) for suite in results.suites]
    entries = [
        entry.model_copy(
            update={"cases": {id_: case for part in archive.baseline_cases(entry) for id_, case in part.items()}}
        )
        for entry in results.baseline_runs
    ]
    return results.model_copy(update={"suites": suites, "baseline_runs": entries})


def agent_seconds(case: CaseResult) -> float:
    """Return the agent's time over all turns and iterations of a case, in seconds."""
    return sum([turn.latency_ms or 0.0 for turn in case.turns]) / 1000


_MOST_LISTED = 3

RESULTS_FILE = "results.json"
#: How agenteval's own results begin, also if another program has formatted them.
OWN_BEGINNING = re.compile(rb'\{\s*"schema_version"')
#: Size in bytes up to which the results of other tools are read.
LARGEST_OF_OTHERS = 500_000_000
_HEAD = 100  # in bytes
_SUITES = '\n "suites": ['
_NO_CASES = '"cases": []'
_NO_BASELINE_CASES = '"cases": {}'
_CASE_INDENT = " " * 3
# Separators in a file. They bound its number of values, each of which takes up to 400 bytes of memory.
_MOST_SEPARATORS = 20_000_000
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_BaselineCases = RootModel[dict[str, BaselineCase]]


class _Version(BaseModel):
    """The version of a results file; an invalid one is ``None``."""

    schema_version: int | None = None


def results_json(results: Results, archive: Archive) -> Iterator[str]:
    """Yield the text of results.json in pieces: one line per case."""
    suites = [suite.model_copy(update={"cases": []}) for suite in results.suites]
    entries = [entry.model_copy(update={"cases": {}}) for entry in results.baseline_runs]
    current = {"schema_version": SCHEMA_VERSION, "suites": suites, "baseline_runs": entries}
    frame = _json(results.model_copy(update=current))
    # Of what follows, suites are the first with this key, and in a text its quotes would be escaped.
    head, mark, rest = frame.partition(_SUITES)
    yield head + mark
    *heads, rest = rest.split(_NO_CASES, len(suites))
    for suite, head in zip(results.suites, heads, strict=True):
        yield f'{head}"cases": ['
        separator = "\n"
        for text in archive.texts(suite):
            yield f"{separator}{text}"
            separator = ",\n"
        yield "]"
    *heads, end = rest.split(_NO_BASELINE_CASES, len(entries))
    for entry, head in zip(results.baseline_runs, heads, strict=True):
        yield f'{head}"cases": '
        yield from _baseline_cases(archive.baseline_cases(entry))
    yield f"{end}\n"


def _baseline_cases(parts: Iterable[Mapping[str, BaselineCase]]) -> Iterator[str]:
    start = "{"
    for part in parts:
        if part:
            lines = _BaselineCases(dict(part)).model_dump_json(indent=1)[1:-2]
            yield start + lines.replace("\n", f"\n{_CASE_INDENT}")
            start = ","
    yield "{}" if start == "{" else f"\n{_CASE_INDENT}}}"


def read_results(path: Path) -> Results:
    """Read a results file.

    Args:
        path: the file, or the report directory that contains ``results.json``.
    """
    file, content = _content(path)
    return parse_results(content, str(file))


def no_results(file: Path) -> Problem:
    """Return the problem of a results file that does not exist, with the runs in the working directory."""
    there = sorted(Path().glob(f"*/{RESULTS_FILE}"))[:_MOST_LISTED]
    here = f"; results here: {', '.join(str(found.parent) for found in there)}" if there else ""
    fix = "name a results.json, or the directory of a report"
    return Problem(f"no such results file; {fix}{here}", file=str(file), kind=Kind.RESULTS)


def _content(path: Path) -> tuple[Path, bytes]:
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        # Before a large file of another kind takes memory.
        with open_regular(file, limit=LARGEST_RESULTS) as stream:
            is_ours = OWN_BEGINNING.match(stream.read(_HEAD).removeprefix(codecs.BOM_UTF8)) is not None
        return file, read_regular(file, limit=LARGEST_RESULTS if is_ours else LARGEST_OF_OTHERS)
    except FileNotFoundError:
        raise ConfigError(no_results(file)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file), kind=Kind.RESULTS)) from None


def parse_results(content: bytes, name: str) -> Results:
    """Parse the content of a results file; see `read_results`."""
    if content.count(b",") > _MOST_SEPARATORS:
        raise ConfigError(
            Problem(
                f"has more than {_MOST_SEPARATORS:,} values; divide the run into shards", file=name, kind=Kind.RESULTS
            )
        )
    try:
        with gc_paused():
            results = Results.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(_unreadable(content, name, error)) from None
    run = results.run
    if not _is_time(run.started_at) or not _is_time(run.finished_at):
        message = "not a results file of agenteval: it does not say when the run started and finished"
        raise ConfigError(Problem(message, file=name, path="run", kind=Kind.RESULTS))
    return results


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None and _FIRST_YEAR <= moment.year <= _LAST_YEAR


def _json(results: Results) -> str:
    try:
        return results.model_dump_json(indent=1)
    except PydanticSerializationError:
        # Names of files and folders need not be UTF-8.
        return json.dumps(clean_json(results.model_dump(mode="json")), indent=1, ensure_ascii=False)


def _first(error: ValidationError) -> ErrorDetails:
    # The input of an error can be the whole file.
    return error.errors(include_url=False, include_context=False, include_input=False)[0]


def _unreadable(content: bytes, file: str, error: ValidationError) -> Problem:
    first = _first(error)
    if first["type"] == "json_invalid":
        return _invalid_json(content, file, first["msg"])
    try:
        version = _Version.model_validate_json(content).schema_version
    except ValidationError:
        version = None
    if version is not None and version != SCHEMA_VERSION:
        other = "a newer" if version > SCHEMA_VERSION else "an earlier"
        message = f"written by {other} agenteval (schema_version {version}, this one reads {SCHEMA_VERSION})"
        return Problem(message, file=file, kind=Kind.RESULTS)
    if version is None:
        return Problem("not a results file of agenteval (it has no schema_version)", file=file, kind=Kind.RESULTS)
    path = ".".join(str(step) for step in first["loc"])
    return Problem(f"not a results file of agenteval: {first['msg']}", file=file, path=path, kind=Kind.RESULTS)


def _invalid_json(content: bytes, file: str, message: str) -> Problem:
    try:
        # Python names the line, and keeps a second copy of the text.
        json.loads(content if len(content) < LARGEST_OF_OTHERS else b"{}")
    except json.JSONDecodeError as broken:
        return Problem(f"not valid JSON: {broken.msg}", file=file, line=broken.lineno, kind=Kind.RESULTS)
    except (ValueError, RecursionError):
        pass
    return Problem(f"not valid JSON: {message.removeprefix('Invalid JSON: ')}", file=file, kind=Kind.RESULTS)
